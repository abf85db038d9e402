; made of runner.c by scripts/runner_ir.py: 14dccd07892a8225b09d256e6f36fe1639f22a95ea79c9a971579299ccd4f156
%struct.step = type { ptr, i64, ptr, i64, i64, i64, i64, ptr }
%struct.bed = type { i32, [60 x i8] }
%struct.carry = type { i64, i64, [2 x ptr], i64 }
%struct.init = type { ptr, i64, i64, i64 }
%struct.move = type { ptr, i64, i64 }
%struct.stack = type { i64, i64, i64 }

define i64 @run(ptr readonly %0, i64 %1, i64 %2, ptr %3, ptr %4) #0 {
  %6 = icmp slt i64 %1, %2
  br i1 %6, label %7, label %51

7:
  %8 = phi i64 [ %49, %47 ], [ %1, %5 ]
  %9 = phi i64 [ %48, %47 ], [ 500000, %5 ]
  %10 = getelementptr %struct.step, ptr %0, i64 %8
  %11 = load ptr, ptr %10, align 8
  %12 = icmp eq ptr %11, null
  br i1 %12, label %13, label %18

13:
  %14 = getelementptr inbounds i8, ptr %10, i64 16
  %15 = load ptr, ptr %14, align 8
  %16 = load i64, ptr %15, align 8
  %17 = icmp eq i64 %16, 0
  br i1 %17, label %47, label %51

18:
  %19 = getelementptr inbounds i8, ptr %10, i64 48
  %20 = load i64, ptr %19, align 8
  %21 = sub i64 %9, %20
  %22 = icmp slt i64 %21, 0
  br i1 %22, label %23, label %26

23:
  %24 = tail call fastcc i32 @is_over(ptr %3, ptr %4) #6
  %25 = icmp eq i32 %24, 0
  br i1 %25, label %26, label %51

26:
  %27 = phi i64 [ %21, %18 ], [ 500000, %23 ]
  %28 = getelementptr inbounds i8, ptr %10, i64 32
  %29 = load i64, ptr %28, align 8
  %30 = icmp ult i64 %29, 2
  br i1 %30, label %31, label %37

31:
  %32 = load ptr, ptr %10, align 8
  %33 = getelementptr inbounds i8, ptr %10, i64 8
  %34 = load i64, ptr %33, align 8
  %35 = getelementptr inbounds i8, ptr %10, i64 16
  %36 = load ptr, ptr %35, align 8
  tail call void %32(i64 0, i64 %34, ptr %36) #7
  br label %47

37:
  %38 = getelementptr inbounds i8, ptr %10, i64 40
  %39 = load i64, ptr %38, align 8
  %40 = icmp eq i64 %39, 0
  br i1 %40, label %44, label %41

41:
  %42 = tail call fastcc i32 @run_shared(ptr nonnull %10, ptr %3, ptr %4) #6
  %43 = icmp eq i32 %42, 0
  br i1 %43, label %47, label %51

44:
  %45 = tail call fastcc i32 @run_alone(ptr nonnull %10, ptr %3, ptr %4) #6
  %46 = icmp eq i32 %45, 0
  br i1 %46, label %47, label %51

47:
  %48 = phi i64 [ %27, %31 ], [ %27, %41 ], [ %27, %44 ], [ %9, %13 ]
  %49 = add i64 %8, 1
  %50 = icmp eq i64 %49, %2
  br i1 %50, label %51, label %7

51:
  %52 = phi i64 [ %2, %5 ], [ %2, %47 ], [ -1, %41 ], [ -1, %44 ], [ -1, %23 ], [ %8, %13 ]
  ret i64 %52
}

define internal fastcc range(i32 0, 2) i32 @is_over(ptr readonly %0, ptr readonly %1) unnamed_addr #1 {
  %3 = alloca [2 x i64], align 16
  %4 = getelementptr inbounds i8, ptr %0, i64 8
  %5 = load ptr, ptr %4, align 8
  %6 = icmp eq ptr %5, null
  br i1 %6, label %10, label %7

7:
  %8 = load atomic i8, ptr %5 monotonic, align 1
  %9 = icmp eq i8 %8, 0
  br i1 %9, label %10, label %25

10:
  %11 = load i64, ptr %0, align 8
  %12 = icmp eq i64 %11, 9223372036854775807
  br i1 %12, label %25, label %13

13:
  %14 = getelementptr inbounds i8, ptr %1, i64 272
  %15 = load ptr, ptr %14, align 16
  %16 = call i32 %15(i32 1, ptr nonnull %3) #7
  %17 = load i64, ptr %3, align 16
  %18 = mul i64 %17, 1000000000
  %19 = getelementptr inbounds i8, ptr %3, i64 8
  %20 = load i64, ptr %19, align 8
  %21 = add i64 %18, %20
  %22 = load i64, ptr %0, align 8
  %23 = icmp sgt i64 %21, %22
  %24 = zext i1 %23 to i32
  br label %25

25:
  %26 = phi i32 [ %24, %13 ], [ 1, %7 ], [ 0, %10 ]
  ret i32 %26
}

define internal fastcc range(i32 0, 2) i32 @run_shared(ptr readonly %0, ptr %1, ptr %2) unnamed_addr #1 {
  %4 = load ptr, ptr %0, align 8
  %5 = getelementptr inbounds i8, ptr %0, i64 16
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr inbounds i8, ptr %0, i64 8
  %8 = load i64, ptr %7, align 8
  %9 = getelementptr inbounds i8, ptr %0, i64 32
  %10 = load i64, ptr %9, align 8
  %11 = getelementptr inbounds i8, ptr %0, i64 40
  %12 = load i64, ptr %11, align 8
  %13 = getelementptr inbounds i8, ptr %2, i64 128
  %14 = cmpxchg ptr %13, i64 0, i64 1 seq_cst monotonic, align 64
  %15 = extractvalue { i64, i1 } %14, 1
  br i1 %15, label %18, label %16

16:
  %17 = tail call fastcc i32 @run_alone(ptr nonnull %0, ptr %1, ptr %2) #6
  br label %101

18:
  %19 = getelementptr inbounds i8, ptr %2, i64 192
  br label %20

20:
  %21 = phi i64 [ 0, %18 ], [ %25, %20 ]
  %22 = getelementptr i64, ptr %19, i64 %21
  %23 = getelementptr i64, ptr %0, i64 %21
  %24 = load i64, ptr %23, align 8
  store atomic i64 %24, ptr %22 monotonic, align 8
  %25 = add nuw nsw i64 %21, 1
  %26 = icmp eq i64 %25, 8
  br i1 %26, label %27, label %20

27:
  %28 = getelementptr inbounds i8, ptr %2, i64 248
  %29 = ptrtoint ptr %1 to i64
  store atomic i64 %29, ptr %28 monotonic, align 8
  %30 = getelementptr inbounds i8, ptr %2, i64 64
  store atomic i32 0, ptr %30 monotonic, align 64
  %31 = getelementptr inbounds i8, ptr %2, i64 80
  store atomic i64 0, ptr %31 monotonic, align 16
  %32 = load atomic i64, ptr %2 monotonic, align 64
  %33 = and i64 %32, -65536
  %34 = add i64 %33, 65536
  store atomic i64 %34, ptr %2 seq_cst, align 64
  %35 = icmp eq i64 %12, 0
  br i1 %35, label %50, label %36

36:
  %37 = getelementptr inbounds i8, ptr %2, i64 320
  %38 = getelementptr inbounds i8, ptr %2, i64 264
  br label %39

39:
  %40 = phi i64 [ 0, %36 ], [ %48, %47 ]
  %41 = getelementptr [63 x %struct.bed], ptr %37, i64 0, i64 %40
  %42 = load atomic i32, ptr %41 seq_cst, align 4
  %43 = icmp eq i32 %42, 0
  br i1 %43, label %47, label %44

44:
  store atomic i32 0, ptr %41 seq_cst, align 4
  %45 = load ptr, ptr %38, align 8
  %46 = tail call i64 (i64, ...) %45(i64 202, ptr nonnull %41, i64 129, i64 1, ptr null) #7
  br label %47

47:
  %48 = add nuw i64 %40, 1
  %49 = icmp eq i64 %48, %12
  br i1 %49, label %50, label %39

50:
  br label %73

51:
  %52 = load atomic i64, ptr %2 acquire, align 64
  %53 = and i64 %52, 65535
  %54 = icmp ult i64 %53, %10
  br i1 %54, label %55, label %75

55:
  %56 = add i64 %52, 1
  %57 = cmpxchg ptr %2, i64 %52, i64 %56 seq_cst monotonic, align 64
  %58 = extractvalue { i64, i1 } %57, 1
  br i1 %58, label %59, label %51

59:
  %60 = load atomic i64, ptr %31 monotonic, align 16
  %61 = icmp eq i64 %60, 0
  br i1 %61, label %62, label %71

62:
  %63 = tail call fastcc i32 @is_over(ptr readonly %1, ptr nonnull %2) #6
  %64 = icmp eq i32 %63, 0
  br i1 %64, label %66, label %65

65:
  store atomic i64 1, ptr %31 monotonic, align 16
  br label %71

66:
  %67 = mul i64 %53, %8
  %68 = udiv i64 %67, %10
  %69 = add i64 %67, %8
  %70 = udiv i64 %69, %10
  tail call void %4(i64 %68, i64 %70, ptr %6) #7
  br label %71

71:
  %72 = add i64 %74, 1
  br label %73

73:
  %74 = phi i64 [ %72, %71 ], [ 0, %50 ]
  br label %51

75:
  %76 = sub i64 %10, %74
  %77 = trunc i64 %76 to i32
  %78 = load atomic i32, ptr %30 acquire, align 64
  %79 = icmp eq i32 %78, %77
  br i1 %79, label %96, label %80

80:
  %81 = getelementptr inbounds i8, ptr %2, i64 72
  %82 = getelementptr inbounds i8, ptr %2, i64 264
  br label %83

83:
  %84 = phi i32 [ %78, %80 ], [ %94, %92 ]
  %85 = phi i64 [ 0, %80 ], [ %93, %92 ]
  %86 = icmp ult i64 %85, 2000
  br i1 %86, label %87, label %88

87:
  tail call void @llvm.x86.sse2.pause()
  br label %92

88:
  store atomic i32 1, ptr %81 seq_cst, align 8
  %89 = load ptr, ptr %82, align 8
  %90 = sext i32 %84 to i64
  %91 = tail call i64 (i64, ...) %89(i64 202, ptr nonnull %30, i64 128, i64 %90, ptr null) #7
  store atomic i32 0, ptr %81 seq_cst, align 8
  br label %92

92:
  %93 = add i64 %85, 1
  %94 = load atomic i32, ptr %30 acquire, align 64
  %95 = icmp eq i32 %94, %77
  br i1 %95, label %96, label %83

96:
  %97 = or disjoint i64 %34, 65535
  store atomic i64 %97, ptr %2 seq_cst, align 64
  %98 = load atomic i64, ptr %31 monotonic, align 16
  %99 = icmp ne i64 %98, 0
  %100 = zext i1 %99 to i32
  store atomic i64 0, ptr %13 release, align 64
  br label %101

101:
  %102 = phi i32 [ %100, %96 ], [ %17, %16 ]
  ret i32 %102
}

define internal fastcc range(i32 0, 2) i32 @run_alone(ptr readonly %0, ptr readonly %1, ptr readonly %2) unnamed_addr #1 {
  %4 = load ptr, ptr %0, align 8
  %5 = getelementptr inbounds i8, ptr %0, i64 16
  %6 = load ptr, ptr %5, align 8
  %7 = getelementptr inbounds i8, ptr %0, i64 8
  %8 = load i64, ptr %7, align 8
  %9 = getelementptr inbounds i8, ptr %0, i64 32
  %10 = load i64, ptr %9, align 8
  %11 = icmp eq i64 %10, 0
  br i1 %11, label %23, label %12

12:
  %13 = phi i64 [ %21, %16 ], [ 0, %3 ]
  %14 = tail call fastcc i32 @is_over(ptr %1, ptr %2) #6
  %15 = icmp eq i32 %14, 0
  br i1 %15, label %16, label %23

16:
  %17 = mul i64 %13, %8
  %18 = udiv i64 %17, %10
  %19 = add i64 %17, %8
  %20 = udiv i64 %19, %10
  tail call void %4(i64 %18, i64 %20, ptr %6) #7
  %21 = add nuw i64 %13, 1
  %22 = icmp eq i64 %21, %10
  br i1 %22, label %23, label %12

23:
  %24 = phi i32 [ 0, %3 ], [ 0, %16 ], [ 1, %12 ]
  ret i32 %24
}

define void @repeat(i64 %0, i64 %1, ptr readonly %2) #0 {
  %4 = load i64, ptr %2, align 8
  %5 = inttoptr i64 %4 to ptr
  %6 = getelementptr inbounds i8, ptr %5, i64 48
  %7 = load i64, ptr %6, align 8
  %8 = icmp slt i64 %0, %1
  br i1 %8, label %9, label %288

9:
  %10 = getelementptr inbounds i8, ptr %5, i64 56
  %11 = load i64, ptr %10, align 8
  %12 = icmp sgt i64 %11, -1
  br i1 %12, label %13, label %19

13:
  %14 = getelementptr i64, ptr %2, i64 %11
  %15 = load i64, ptr %14, align 8
  %16 = inttoptr i64 %15 to ptr
  %17 = load i64, ptr %16, align 8
  %18 = tail call i64 @llvm.smin.i64(i64 %17, i64 %7)
  br label %19

19:
  %20 = phi i64 [ %7, %9 ], [ %18, %13 ]
  %21 = getelementptr inbounds i8, ptr %5, i64 168
  store i64 0, ptr %21, align 8
  %22 = getelementptr inbounds i8, ptr %5, i64 120
  %23 = load i64, ptr %22, align 8
  %24 = icmp sgt i64 %23, 0
  br i1 %24, label %25, label %27

25:
  %26 = getelementptr inbounds i8, ptr %5, i64 112
  br label %34

27:
  %28 = getelementptr inbounds i8, ptr %5, i64 88
  %29 = load i64, ptr %28, align 8
  %30 = icmp sgt i64 %29, 0
  br i1 %30, label %31, label %92

31:
  %32 = getelementptr inbounds i8, ptr %5, i64 80
  %33 = add i64 %20, -1
  br label %69

34:
  %35 = phi i64 [ 0, %25 ], [ %66, %65 ]
  %36 = load ptr, ptr %26, align 8
  %37 = getelementptr %struct.carry, ptr %36, i64 %35
  %38 = getelementptr inbounds i8, ptr %37, i64 16
  %39 = load ptr, ptr %38, align 8
  %40 = load i64, ptr %37, align 8
  %41 = getelementptr i64, ptr %2, i64 %40
  %42 = load i64, ptr %41, align 8
  %43 = inttoptr i64 %42 to ptr
  %44 = getelementptr inbounds i8, ptr %37, i64 32
  %45 = load i64, ptr %44, align 8
  %46 = icmp ult i64 %45, 8
  br i1 %46, label %47, label %50

47:
  %48 = phi i64 [ 0, %34 ], [ %51, %50 ]
  %49 = icmp ult i64 %48, %45
  br i1 %49, label %58, label %65

50:
  %51 = phi i64 [ %56, %50 ], [ 8, %34 ]
  %52 = phi i64 [ %51, %50 ], [ 0, %34 ]
  %53 = getelementptr i8, ptr %43, i64 %52
  %54 = load i64, ptr %53, align 8
  %55 = getelementptr i8, ptr %39, i64 %52
  store i64 %54, ptr %55, align 8
  %56 = add i64 %51, 8
  %57 = icmp ugt i64 %56, %45
  br i1 %57, label %47, label %50

58:
  %59 = phi i64 [ %63, %58 ], [ %48, %47 ]
  %60 = getelementptr i8, ptr %43, i64 %59
  %61 = load i8, ptr %60, align 1
  %62 = getelementptr i8, ptr %39, i64 %59
  store i8 %61, ptr %62, align 1
  %63 = add nuw i64 %59, 1
  %64 = icmp eq i64 %63, %45
  br i1 %64, label %65, label %58

65:
  %66 = add nuw nsw i64 %35, 1
  %67 = load i64, ptr %22, align 8
  %68 = icmp slt i64 %66, %67
  br i1 %68, label %34, label %27

69:
  %70 = phi i64 [ 0, %31 ], [ %89, %79 ]
  %71 = load ptr, ptr %32, align 8
  %72 = getelementptr %struct.init, ptr %71, i64 %70
  %73 = getelementptr inbounds i8, ptr %72, i64 8
  %74 = load i64, ptr %73, align 8
  %75 = icmp slt i64 %74, 0
  br i1 %75, label %79, label %76

76:
  %77 = getelementptr i64, ptr %2, i64 %74
  %78 = load i64, ptr %77, align 8
  br label %79

79:
  %80 = phi i64 [ %78, %76 ], [ 0, %69 ]
  %81 = getelementptr inbounds i8, ptr %72, i64 16
  %82 = load i64, ptr %81, align 8
  %83 = add i64 %82, %80
  %84 = getelementptr inbounds i8, ptr %72, i64 24
  %85 = load i64, ptr %84, align 8
  %86 = mul i64 %85, %33
  %87 = add i64 %83, %86
  %88 = load ptr, ptr %72, align 8
  store i64 %87, ptr %88, align 8
  %89 = add nuw nsw i64 %70, 1
  %90 = load i64, ptr %28, align 8
  %91 = icmp slt i64 %89, %90
  br i1 %91, label %69, label %92

92:
  %93 = getelementptr inbounds i8, ptr %5, i64 16
  %94 = load ptr, ptr %93, align 8
  %95 = icmp eq ptr %94, null
  br i1 %95, label %107, label %96

96:
  %97 = getelementptr inbounds i8, ptr %5, i64 24
  %98 = load i64, ptr %97, align 8
  %99 = getelementptr inbounds i8, ptr %5, i64 144
  %100 = load ptr, ptr %99, align 8
  %101 = getelementptr inbounds i8, ptr %5, i64 152
  %102 = load ptr, ptr %101, align 8
  %103 = tail call i64 @run(ptr nonnull %94, i64 0, i64 %98, ptr %100, ptr %102) #6
  %104 = load i64, ptr %97, align 8
  %105 = icmp ne i64 %103, %104
  %106 = zext i1 %105 to i64
  store i64 %106, ptr %21, align 8
  br label %109

107:
  %108 = load i64, ptr %21, align 8
  br label %109

109:
  %110 = phi i64 [ %108, %107 ], [ %106, %96 ]
  %111 = icmp eq i64 %110, 0
  br i1 %111, label %112, label %188

112:
  %113 = load ptr, ptr %93, align 8
  %114 = icmp eq ptr %113, null
  br i1 %114, label %120, label %115

115:
  %116 = getelementptr inbounds i8, ptr %5, i64 32
  %117 = load ptr, ptr %116, align 8
  %118 = load i8, ptr %117, align 1
  %119 = icmp eq i8 %118, 0
  br i1 %119, label %188, label %120

120:
  %121 = getelementptr inbounds i8, ptr %5, i64 160
  %122 = icmp sgt i64 %20, 0
  br i1 %122, label %123, label %185

123:
  %124 = load i64, ptr %121, align 8
  %125 = getelementptr inbounds i8, ptr %5, i64 144
  %126 = getelementptr inbounds i8, ptr %5, i64 152
  %127 = getelementptr inbounds i8, ptr %5, i64 8
  %128 = getelementptr inbounds i8, ptr %5, i64 104
  %129 = getelementptr inbounds i8, ptr %5, i64 96
  %130 = getelementptr inbounds i8, ptr %5, i64 40
  br label %131

131:
  %132 = phi i1 [ true, %123 ], [ %179, %178 ]
  %133 = phi i64 [ 0, %123 ], [ %172, %178 ]
  %134 = phi i64 [ %124, %123 ], [ %145, %178 ]
  %135 = add i64 %134, -1
  %136 = icmp slt i64 %135, 0
  br i1 %136, label %137, label %144

137:
  %138 = load ptr, ptr %125, align 8
  %139 = load ptr, ptr %126, align 8
  %140 = tail call fastcc i32 @is_over(ptr %138, ptr %139) #6
  %141 = icmp eq i32 %140, 0
  br i1 %141, label %142, label %181

142:
  %143 = load i64, ptr %121, align 8
  br label %144

144:
  %145 = phi i64 [ %143, %142 ], [ %135, %131 ]
  %146 = load ptr, ptr %5, align 8
  %147 = load i64, ptr %127, align 8
  %148 = load ptr, ptr %125, align 8
  %149 = load ptr, ptr %126, align 8
  %150 = tail call i64 @run(ptr %146, i64 0, i64 %147, ptr %148, ptr %149) #6
  %151 = load i64, ptr %127, align 8
  %152 = icmp eq i64 %150, %151
  br i1 %152, label %153, label %181

153:
  %154 = load i64, ptr %128, align 8
  %155 = icmp sgt i64 %154, 0
  br i1 %155, label %156, label %171

156:
  %157 = phi i64 [ %168, %156 ], [ 0, %153 ]
  %158 = load ptr, ptr %129, align 8
  %159 = getelementptr %struct.move, ptr %158, i64 %157
  %160 = load ptr, ptr %159, align 8
  %161 = load i64, ptr %160, align 8
  %162 = getelementptr inbounds i8, ptr %159, i64 8
  %163 = load i64, ptr %162, align 8
  %164 = add i64 %163, %161
  %165 = getelementptr inbounds i8, ptr %159, i64 16
  %166 = load i64, ptr %165, align 8
  %167 = xor i64 %164, %166
  store i64 %167, ptr %160, align 8
  %168 = add nuw nsw i64 %157, 1
  %169 = load i64, ptr %128, align 8
  %170 = icmp slt i64 %168, %169
  br i1 %170, label %156, label %171

171:
  %172 = add nuw nsw i64 %133, 1
  %173 = load ptr, ptr %130, align 8
  %174 = icmp eq ptr %173, null
  br i1 %174, label %178, label %175

175:
  %176 = load i8, ptr %173, align 1
  %177 = icmp eq i8 %176, 0
  br i1 %177, label %188, label %178

178:
  %179 = icmp slt i64 %172, %20
  %180 = icmp eq i64 %172, %20
  br i1 %180, label %181, label %131

181:
  %182 = phi i64 [ %20, %178 ], [ %133, %137 ], [ %133, %144 ]
  %183 = phi i1 [ %179, %178 ], [ %132, %137 ], [ %132, %144 ]
  %184 = zext i1 %183 to i64
  br label %185

185:
  %186 = phi i64 [ 0, %120 ], [ %182, %181 ]
  %187 = phi i64 [ 0, %120 ], [ %184, %181 ]
  store i64 %187, ptr %21, align 8
  br label %188

188:
  %189 = phi i64 [ 0, %109 ], [ 0, %115 ], [ %186, %185 ], [ %172, %175 ]
  %190 = load i64, ptr %22, align 8
  %191 = icmp sgt i64 %190, 0
  br i1 %191, label %192, label %195

192:
  %193 = getelementptr inbounds i8, ptr %5, i64 112
  %194 = and i64 %189, 1
  br label %201

195:
  %196 = getelementptr inbounds i8, ptr %5, i64 136
  %197 = load i64, ptr %196, align 8
  %198 = icmp sgt i64 %197, 0
  br i1 %198, label %199, label %265

199:
  %200 = getelementptr inbounds i8, ptr %5, i64 128
  br label %238

201:
  %202 = phi i64 [ 0, %192 ], [ %235, %234 ]
  %203 = load ptr, ptr %193, align 8
  %204 = getelementptr %struct.carry, ptr %203, i64 %202
  %205 = getelementptr inbounds i8, ptr %204, i64 8
  %206 = load i64, ptr %205, align 8
  %207 = getelementptr i64, ptr %2, i64 %206
  %208 = load i64, ptr %207, align 8
  %209 = inttoptr i64 %208 to ptr
  %210 = getelementptr inbounds i8, ptr %204, i64 16
  %211 = getelementptr [2 x ptr], ptr %210, i64 0, i64 %194
  %212 = load ptr, ptr %211, align 8
  %213 = getelementptr inbounds i8, ptr %204, i64 32
  %214 = load i64, ptr %213, align 8
  %215 = icmp ult i64 %214, 8
  br i1 %215, label %216, label %219

216:
  %217 = phi i64 [ 0, %201 ], [ %220, %219 ]
  %218 = icmp ult i64 %217, %214
  br i1 %218, label %227, label %234

219:
  %220 = phi i64 [ %225, %219 ], [ 8, %201 ]
  %221 = phi i64 [ %220, %219 ], [ 0, %201 ]
  %222 = getelementptr i8, ptr %212, i64 %221
  %223 = load i64, ptr %222, align 8
  %224 = getelementptr i8, ptr %209, i64 %221
  store i64 %223, ptr %224, align 8
  %225 = add i64 %220, 8
  %226 = icmp ugt i64 %225, %214
  br i1 %226, label %216, label %219

227:
  %228 = phi i64 [ %232, %227 ], [ %217, %216 ]
  %229 = getelementptr i8, ptr %212, i64 %228
  %230 = load i8, ptr %229, align 1
  %231 = getelementptr i8, ptr %209, i64 %228
  store i8 %230, ptr %231, align 1
  %232 = add nuw i64 %228, 1
  %233 = icmp eq i64 %232, %214
  br i1 %233, label %234, label %227

234:
  %235 = add nuw nsw i64 %202, 1
  %236 = load i64, ptr %22, align 8
  %237 = icmp slt i64 %235, %236
  br i1 %237, label %201, label %195

238:
  %239 = phi i64 [ %197, %199 ], [ %262, %261 ]
  %240 = phi i64 [ 0, %199 ], [ %263, %261 ]
  %241 = load ptr, ptr %200, align 8
  %242 = getelementptr %struct.stack, ptr %241, i64 %240
  %243 = getelementptr inbounds i8, ptr %242, i64 8
  %244 = load i64, ptr %243, align 8
  %245 = mul i64 %244, %189
  %246 = getelementptr inbounds i8, ptr %242, i64 16
  %247 = load i64, ptr %246, align 8
  %248 = icmp ult i64 %245, %247
  br i1 %248, label %249, label %261

249:
  %250 = phi i64 [ %256, %249 ], [ %245, %238 ]
  %251 = load i64, ptr %242, align 8
  %252 = getelementptr i64, ptr %2, i64 %251
  %253 = load i64, ptr %252, align 8
  %254 = inttoptr i64 %253 to ptr
  %255 = getelementptr i8, ptr %254, i64 %250
  store i8 0, ptr %255, align 1
  %256 = add nuw i64 %250, 1
  %257 = load i64, ptr %246, align 8
  %258 = icmp ult i64 %256, %257
  br i1 %258, label %249, label %259

259:
  %260 = load i64, ptr %196, align 8
  br label %261

261:
  %262 = phi i64 [ %260, %259 ], [ %239, %238 ]
  %263 = add nuw nsw i64 %240, 1
  %264 = icmp slt i64 %263, %262
  br i1 %264, label %238, label %265

265:
  %266 = getelementptr inbounds i8, ptr %5, i64 64
  %267 = load i64, ptr %266, align 8
  %268 = icmp sgt i64 %267, -1
  br i1 %268, label %269, label %273

269:
  %270 = getelementptr i64, ptr %2, i64 %267
  %271 = load i64, ptr %270, align 8
  %272 = inttoptr i64 %271 to ptr
  store i64 %189, ptr %272, align 8
  br label %273

273:
  %274 = getelementptr inbounds i8, ptr %5, i64 72
  %275 = load i64, ptr %274, align 8
  %276 = icmp sgt i64 %275, -1
  br i1 %276, label %277, label %288

277:
  %278 = icmp eq i64 %189, 0
  %279 = select i1 %278, i64 32, i64 40
  %280 = getelementptr inbounds i8, ptr %5, i64 %279
  %281 = load ptr, ptr %280, align 8
  %282 = load i8, ptr %281, align 1
  %283 = icmp eq i8 %282, 0
  %284 = zext i1 %283 to i8
  %285 = getelementptr i64, ptr %2, i64 %275
  %286 = load i64, ptr %285, align 8
  %287 = inttoptr i64 %286 to ptr
  store i8 %284, ptr %287, align 1
  br label %288

288:
  ret void
}

define void @copy(i64 %0, i64 %1, ptr readonly %2) #2 {
  %4 = alloca [8 x i64], align 16
  %5 = load i64, ptr %2, align 8
  %6 = getelementptr i8, ptr %2, i64 8
  %7 = load i64, ptr %6, align 8
  %8 = getelementptr i8, ptr %2, i64 16
  %9 = load i64, ptr %8, align 8
  %10 = getelementptr i8, ptr %2, i64 24
  %11 = load i64, ptr %10, align 8
  %12 = getelementptr i8, ptr %2, i64 32
  call void @llvm.memset.p0.i64(ptr nonnull align 16 dereferenceable(64) %4, i8 0, i64 64, i1 false)
  %13 = icmp slt i64 %0, %1
  br i1 %13, label %14, label %68

14:
  %15 = inttoptr i64 %7 to ptr
  %16 = inttoptr i64 %5 to ptr
  %17 = icmp ult i64 %9, 8
  %18 = add i64 %11, -1
  %19 = icmp sgt i64 %18, -1
  br label %20

20:
  %21 = phi ptr [ %15, %14 ], [ %53, %42 ]
  %22 = phi ptr [ %16, %14 ], [ %50, %42 ]
  br i1 %17, label %23, label %26

23:
  %24 = phi i64 [ 0, %20 ], [ %27, %26 ]
  %25 = icmp ult i64 %24, %9
  br i1 %25, label %34, label %41

26:
  %27 = phi i64 [ %32, %26 ], [ 8, %20 ]
  %28 = phi i64 [ %27, %26 ], [ 0, %20 ]
  %29 = getelementptr i8, ptr %21, i64 %28
  %30 = load i64, ptr %29, align 8
  %31 = getelementptr i8, ptr %22, i64 %28
  store i64 %30, ptr %31, align 8
  %32 = add i64 %27, 8
  %33 = icmp ugt i64 %32, %9
  br i1 %33, label %23, label %26

34:
  %35 = phi i64 [ %39, %34 ], [ %24, %23 ]
  %36 = getelementptr i8, ptr %21, i64 %35
  %37 = load i8, ptr %36, align 1
  %38 = getelementptr i8, ptr %22, i64 %35
  store i8 %37, ptr %38, align 1
  %39 = add nuw i64 %35, 1
  %40 = icmp eq i64 %39, %9
  br i1 %40, label %41, label %34

41:
  br i1 %19, label %42, label %68

42:
  %43 = phi i64 [ %66, %59 ], [ %18, %41 ]
  %44 = phi ptr [ %62, %59 ], [ %22, %41 ]
  %45 = phi ptr [ %65, %59 ], [ %21, %41 ]
  %46 = mul i64 %43, 24
  %47 = getelementptr i8, ptr %12, i64 %46
  %48 = getelementptr i8, ptr %47, i64 8
  %49 = load i64, ptr %48, align 8
  %50 = getelementptr i8, ptr %44, i64 %49
  %51 = getelementptr i8, ptr %47, i64 16
  %52 = load i64, ptr %51, align 8
  %53 = getelementptr i8, ptr %45, i64 %52
  %54 = getelementptr [8 x i64], ptr %4, i64 0, i64 %43
  %55 = load i64, ptr %54, align 8
  %56 = add i64 %55, 1
  store i64 %56, ptr %54, align 8
  %57 = load i64, ptr %47, align 8
  %58 = icmp slt i64 %56, %57
  br i1 %58, label %20, label %59

59:
  %60 = mul i64 %49, %57
  %61 = sub i64 0, %60
  %62 = getelementptr i8, ptr %50, i64 %61
  %63 = mul i64 %52, %57
  %64 = sub i64 0, %63
  %65 = getelementptr i8, ptr %53, i64 %64
  store i64 0, ptr %54, align 8
  %66 = add nsw i64 %43, -1
  %67 = icmp sgt i64 %43, 0
  br i1 %67, label %42, label %68

68:
  ret void
}

declare void @llvm.memset.p0.i64(ptr writeonly, i8, i64, i1 immarg) #3

define void @help(ptr %0, i64 %1) #0 {
  %3 = getelementptr inbounds i8, ptr %0, i64 320
  %4 = getelementptr [63 x %struct.bed], ptr %3, i64 0, i64 %1
  %5 = getelementptr inbounds i8, ptr %0, i64 256
  %6 = load atomic i64, ptr %5 acquire, align 64
  %7 = icmp eq i64 %6, 0
  br i1 %7, label %8, label %82

8:
  %9 = getelementptr inbounds i8, ptr %0, i64 192
  %10 = getelementptr inbounds i8, ptr %0, i64 224
  %11 = getelementptr inbounds i8, ptr %0, i64 232
  %12 = getelementptr inbounds i8, ptr %0, i64 264
  %13 = getelementptr inbounds i8, ptr %0, i64 200
  %14 = getelementptr inbounds i8, ptr %0, i64 208
  %15 = getelementptr inbounds i8, ptr %0, i64 216
  %16 = getelementptr inbounds i8, ptr %0, i64 248
  %17 = add nuw i64 %1, 1
  %18 = getelementptr inbounds i8, ptr %0, i64 80
  %19 = getelementptr inbounds i8, ptr %0, i64 64
  %20 = getelementptr inbounds i8, ptr %0, i64 72
  br label %21

21:
  %22 = phi i64 [ 0, %8 ], [ %79, %78 ]
  %23 = load atomic i64, ptr %0 acquire, align 64
  %24 = and i64 %23, 65535
  %25 = load atomic i64, ptr %10 monotonic, align 8
  %26 = icmp ult i64 %24, %25
  br i1 %26, label %27, label %63

27:
  %28 = load atomic i64, ptr %11 monotonic, align 8
  %29 = icmp ugt i64 %28, %1
  br i1 %29, label %30, label %63

30:
  %31 = load atomic i64, ptr %9 monotonic, align 8
  %32 = inttoptr i64 %31 to ptr
  %33 = load atomic i64, ptr %13 monotonic, align 8
  %34 = load atomic i64, ptr %14 monotonic, align 8
  %35 = load atomic i64, ptr %15 monotonic, align 8
  %36 = load atomic i64, ptr %16 monotonic, align 8
  %37 = inttoptr i64 %36 to ptr
  %38 = add i64 %23, 1
  %39 = cmpxchg ptr %0, i64 %23, i64 %38 seq_cst monotonic, align 64
  %40 = extractvalue { i64, i1 } %39, 1
  br i1 %40, label %41, label %78

41:
  %42 = inttoptr i64 %34 to ptr
  %43 = mul i64 %35, %17
  %44 = getelementptr i8, ptr %42, i64 %43
  %45 = load atomic i64, ptr %18 monotonic, align 16
  %46 = icmp eq i64 %45, 0
  br i1 %46, label %47, label %56

47:
  %48 = tail call fastcc i32 @is_over(ptr readonly %37, ptr nonnull %0) #6
  %49 = icmp eq i32 %48, 0
  br i1 %49, label %51, label %50

50:
  store atomic i64 1, ptr %18 monotonic, align 16
  br label %56

51:
  %52 = mul i64 %33, %24
  %53 = udiv i64 %52, %25
  %54 = add i64 %52, %33
  %55 = udiv i64 %54, %25
  tail call void %32(i64 %53, i64 %55, ptr %44) #7
  br label %56

56:
  %57 = atomicrmw add ptr %19, i32 1 seq_cst, align 64
  %58 = load atomic i32, ptr %20 seq_cst, align 8
  %59 = icmp eq i32 %58, 0
  br i1 %59, label %78, label %60

60:
  %61 = load ptr, ptr %12, align 8
  %62 = tail call i64 (i64, ...) %61(i64 202, ptr nonnull %19, i64 129, i64 1, ptr null) #7
  br label %78

63:
  %64 = icmp ult i64 %22, 2000
  br i1 %64, label %65, label %67

65:
  %66 = add nuw nsw i64 %22, 1
  tail call void @llvm.x86.sse2.pause()
  br label %78

67:
  store atomic i32 1, ptr %4 seq_cst, align 4
  %68 = load atomic i64, ptr %0 seq_cst, align 64
  %69 = xor i64 %68, %23
  %70 = icmp ult i64 %69, 65536
  br i1 %70, label %71, label %77

71:
  %72 = load atomic i64, ptr %5 seq_cst, align 64
  %73 = icmp eq i64 %72, 0
  br i1 %73, label %74, label %77

74:
  %75 = load ptr, ptr %12, align 8
  %76 = tail call i64 (i64, ...) %75(i64 202, ptr nonnull %4, i64 128, i64 1, ptr null) #7
  br label %77

77:
  store atomic i32 0, ptr %4 seq_cst, align 4
  br label %78

78:
  %79 = phi i64 [ %66, %65 ], [ 0, %77 ], [ 0, %56 ], [ 0, %60 ], [ 0, %30 ]
  %80 = load atomic i64, ptr %5 acquire, align 64
  %81 = icmp eq i64 %80, 0
  br i1 %81, label %21, label %82

82:
  ret void
}

declare void @llvm.x86.sse2.pause() #4

declare i64 @llvm.smin.i64(i64, i64) #5

attributes #0 = { nounwind }
attributes #1 = { nounwind noinline }
attributes #2 = { nounwind }
attributes #3 = { nounwind }
attributes #4 = { nounwind }
attributes #5 = { nounwind }
attributes #6 = { nounwind }
attributes #7 = { nounwind }
