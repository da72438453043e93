NAME solve_error
ROWS
 N obj
 E r0
 E r1
 E r2
 E r3
 E r4
 E r5
 L r6
 L r7
 L r8
 L r9
 L r10
 L r11
 L r12
COLUMNS
 MARK0 'MARKER' 'INTORG'
 c0 r0 1.0
 c0 r1 -1.0
 c1 r0 1.0
 c1 r1 -1.0
 c1 r6 1.0
 c1 r12 612.0502729787784
 c2 r0 1.0
 c2 r1 -1.0
 c2 r6 1.0
 c2 r12 306.0251364893892
 c3 r1 1.0
 c3 r2 -1.0
 c3 r5 155.10047595938298
 c3 r6 1.0
 c4 r1 1.0
 c4 r2 -1.0
 c4 r5 103.4003173062553
 c4 r7 1.0
 c4 r12 612.0502729787784
 c5 r1 1.0
 c5 r2 -1.0
 c5 r5 103.4003173062553
 c5 r7 1.0
 c5 r10 1.0
 c5 r12 306.0251364893892
 c6 r2 1.0
 c6 r3 -1.0
 c6 r5 -29.551953387679518
 c6 r7 1.0
 c6 r10 1.0
 c7 r2 1.0
 c7 r3 -1.0
 c7 r5 -55.40203271424335
 c7 r8 1.0
 c7 r10 1.0
 c7 r12 612.0502729787784
 c8 r2 1.0
 c8 r3 -1.0
 c8 r5 -81.25211204080718
 c8 r8 1.0
 c8 r11 1.0
 c8 r12 306.0251364893892
 c9 r3 1.0
 c9 r4 -1.0
 c9 r8 1.0
 c9 r11 1.0
 c10 r3 1.0
 c10 r4 -1.0
 c10 r9 1.0
 c10 r12 306.0251364893892
 c11 r4 1.0
 c11 r9 1.0
 c12 r4 1.0
 c12 r12 612.0502729787784
 c13 r4 1.0
 c13 r12 306.0251364893892
 c14 r12 306.0251364893892
 MARK15 'MARKER' 'INTEND'
 c15 r5 1.0
 c16 r5 -1.0
RHS
 rhs r0 1.0
 rhs r6 1.0
 rhs r7 1.0
 rhs r8 1.0
 rhs r9 1.0
 rhs r10 1.0
 rhs r11 1.0
 rhs r12 1000.0
BOUNDS
 UP bnd c0 1.0
 UP bnd c1 1.0
 UP bnd c2 1.0
 UP bnd c3 1.0
 UP bnd c4 1.0
 UP bnd c5 1.0
 UP bnd c6 1.0
 UP bnd c7 1.0
 UP bnd c8 1.0
 UP bnd c9 1.0
 UP bnd c10 1.0
 UP bnd c11 1.0
 UP bnd c12 1.0
 UP bnd c13 1.0
 UP bnd c14 1.0
ENDATA
