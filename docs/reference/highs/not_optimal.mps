NAME not_optimal
OBJSENSE
  MAX
ROWS
 N  Obj     
 E  r0      
 E  r1      
 E  r3      
 E  r4      
 E  r6      
 E  r7      
 E  r8      
 E  r9      
 E  r10     
 E  r12     
 E  r13     
 L  r14     
 L  r15     
 L  r16     
 G  r17     
 G  r18     
 G  r19     
 L  r21     
 L  r22     
 L  r23     
COLUMNS
    MARK0000  'MARKER'                 'INTORG'
    c0        r0        1
    c0        r17       0.952357010556447
    c0        r21       1
    c1        r1        1
    c1        r3        -1
    c1        r17       1
    c1        r21       2
    c2        r4        -1
    c2        r17       0.952357010556447
    c2        r22       1
    c3        r3        1
    c3        r17       1
    c3        r22       2
    c4        r4        1
    c4        r17       0.952357010556447
    c4        r23       1
    c6        r6        1
    c6        r7        -1
    c6        r18       1
    c7        r7        1
    c7        r8        -1
    c7        r18       1
    c7        r21       1
    c8        r8        1
    c8        r9        -1
    c8        r18       1
    c8        r22       1
    c9        r9        1
    c9        r18       1
    c9        r23       1
    c10       r10       1
    c10       r19       1
    c11       r12       -1
    c11       r19       1
    c11       r21       1
    c12       r12       1
    c12       r13       -1
    c12       r19       1
    c12       r22       1
    c13       r13       1
    c13       r19       1
    c13       r23       1
    c14       r0        -1
    c14       r14       1
    c16       r4        -1
    c16       r14       1
    c17       r1        -1
    c17       r14       1
    c18       r3        -1
    c18       r14       1
    c20       r6        -1
    c20       r15       1
    c22       r8        -1
    c22       r15       1
    c23       r9        -1
    c23       r15       1
    c24       r10       -1
    c24       r16       1
    c26       r12       -1
    c26       r16       1
    c27       r13       -1
    c27       r16       1
    MARK0001  'MARKER'                 'INTEND'
    c29       r3        1
    c30       r4        1
    c32       r7        1
    c33       r8        1
    c34       r9        1
    c36       r12       1
    c37       r13       1
    c38       Obj       0.996783220786772
    c38       r17       -3
    c38       r18       -3.59833758787921
    c38       r19       -3.87211207373406
RHS
    RHS_V     r14       1
    RHS_V     r15       1
    RHS_V     r16       1
    RHS_V     r21       2
    RHS_V     r22       2
    RHS_V     r23       2
BOUNDS
 BV BOUND     c0      
 BV BOUND     c1      
 BV BOUND     c2      
 BV BOUND     c3      
 BV BOUND     c4      
 BV BOUND     c6      
 BV BOUND     c7      
 BV BOUND     c8      
 BV BOUND     c9      
 BV BOUND     c10     
 BV BOUND     c11     
 BV BOUND     c12     
 BV BOUND     c13     
 BV BOUND     c14     
 BV BOUND     c16     
 BV BOUND     c17     
 BV BOUND     c18     
 BV BOUND     c20     
 BV BOUND     c22     
 BV BOUND     c23     
 BV BOUND     c24     
 BV BOUND     c26     
 BV BOUND     c27     
 UP BOUND     c29       1
 UP BOUND     c30       1
 UP BOUND     c32       1
 UP BOUND     c33       1
 UP BOUND     c34       1
 UP BOUND     c36       1
 UP BOUND     c37       1
 UP BOUND     c38       1
ENDATA
