NAME start_kept
OBJSENSE
  MAX
ROWS
 N  Obj     
 G  r0      
 G  r1      
 G  r2      
 G  r3      
 G  r4      
 L  r5      
 L  r6      
 L  r7      
 L  r8      
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    x0        r3        0.95209079137786579
    x0        r5        1
    x1        r2        0.59544789227166284
    x1        r3        0.95209079137786579
    x1        r5        1
    x2        r2        0.59544789227166284
    x2        r3        1
    x2        r5        1
    x3        r0        1
    x3        r1        1
    x3        r4        0.42771892365388298
    x3        r6        1
    x4        r2        0.59544789227166284
    x4        r3        0.56886704439438418
    x4        r4        0.8013682561605685
    x4        r6        1
    x5        r0        1
    x5        r3        0.56886704439438418
    x5        r4        1
    x5        r6        1
    x6        r0        1
    x6        r2        0.59544789227166284
    x6        r4        1
    x6        r6        1
    x7        r0        1
    x7        r1        1
    x7        r7        1
    x8        r1        1
    x8        r2        0.59544789227166284
    x8        r3        0.56886704439438418
    x8        r7        1
    x9        r1        1
    x9        r3        0.89916636038812514
    x9        r4        0.42771892365388298
    x9        r7        1
    x10       r0        1
    x10       r2        0.59544789227166284
    x10       r4        1
    x10       r7        1
    x11       r0        1
    x11       r1        1
    x11       r8        1
    x12       r1        1
    x12       r4        0.8013682561605685
    x12       r8        1
    x13       r0        1
    x13       r4        1
    x13       r8        1
    x14       Obj       2.28
    MARK0001  'MARKER'                 'INTEND'
RHS
    RHS_V     r0        2.2001199967998804
    RHS_V     r1        0.7387121545112878
    RHS_V     r2        0.49146716100853283
    RHS_V     r3        0.99999999900000003
    RHS_V     r4        0.99999999900000003
    RHS_V     r5        1
    RHS_V     r6        1
    RHS_V     r7        1
    RHS_V     r8        1
BOUNDS
 BV BOUND     x0      
 BV BOUND     x1      
 BV BOUND     x2      
 BV BOUND     x3      
 BV BOUND     x4      
 BV BOUND     x5      
 BV BOUND     x6      
 BV BOUND     x7      
 BV BOUND     x8      
 BV BOUND     x9      
 BV BOUND     x10     
 BV BOUND     x11     
 BV BOUND     x12     
 BV BOUND     x13     
 BV BOUND     x14     
ENDATA
