; made of runner.c by scripts/runner_ir.py: 7c62ccf38c4bcff2e01c06230142ee9e8a0755d91207817e1666a31338e1ae12
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
  br i1 %8, label %9, label %311

9:
  %10 = getelementptr inbounds i8, ptr %5, i64 168
  store i64 0, ptr %10, align 8
  %11 = getelementptr inbounds i8, ptr %5, i64 176
  %12 = load i64, ptr %11, align 8
  %13 = icmp sgt i64 %12, -1
  br i1 %13, label %14, label %23

14:
  %15 = getelementptr i64, ptr %2, i64 %12
  %16 = load i64, ptr %15, align 8
  %17 = inttoptr i64 %16 to ptr
  %18 = load i8, ptr %17, align 1
  %19 = sext i8 %18 to i64
  %20 = getelementptr inbounds i8, ptr %5, i64 184
  %21 = load i64, ptr %20, align 8
  %22 = icmp eq i64 %21, %19
  br i1 %22, label %23, label %311

23:
  %24 = getelementptr inbounds i8, ptr %5, i64 56
  %25 = load i64, ptr %24, align 8
  %26 = icmp sgt i64 %25, -1
  br i1 %26, label %27, label %33

27:
  %28 = getelementptr i64, ptr %2, i64 %25
  %29 = load i64, ptr %28, align 8
  %30 = inttoptr i64 %29 to ptr
  %31 = load i64, ptr %30, align 8
  %32 = tail call i64 @llvm.smin.i64(i64 %31, i64 %7)
  br label %33

33:
  %34 = phi i64 [ %7, %23 ], [ %32, %27 ]
  %35 = getelementptr inbounds i8, ptr %5, i64 120
  %36 = load i64, ptr %35, align 8
  %37 = icmp sgt i64 %36, 0
  br i1 %37, label %38, label %40

38:
  %39 = getelementptr inbounds i8, ptr %5, i64 112
  br label %47

40:
  %41 = getelementptr inbounds i8, ptr %5, i64 88
  %42 = load i64, ptr %41, align 8
  %43 = icmp sgt i64 %42, 0
  br i1 %43, label %44, label %105

44:
  %45 = getelementptr inbounds i8, ptr %5, i64 80
  %46 = add i64 %34, -1
  br label %82

47:
  %48 = phi i64 [ 0, %38 ], [ %79, %78 ]
  %49 = load ptr, ptr %39, align 8
  %50 = getelementptr %struct.carry, ptr %49, i64 %48
  %51 = getelementptr inbounds i8, ptr %50, i64 16
  %52 = load ptr, ptr %51, align 8
  %53 = load i64, ptr %50, align 8
  %54 = getelementptr i64, ptr %2, i64 %53
  %55 = load i64, ptr %54, align 8
  %56 = inttoptr i64 %55 to ptr
  %57 = getelementptr inbounds i8, ptr %50, i64 32
  %58 = load i64, ptr %57, align 8
  %59 = icmp ult i64 %58, 8
  br i1 %59, label %60, label %63

60:
  %61 = phi i64 [ 0, %47 ], [ %64, %63 ]
  %62 = icmp ult i64 %61, %58
  br i1 %62, label %71, label %78

63:
  %64 = phi i64 [ %69, %63 ], [ 8, %47 ]
  %65 = phi i64 [ %64, %63 ], [ 0, %47 ]
  %66 = getelementptr i8, ptr %56, i64 %65
  %67 = load i64, ptr %66, align 8
  %68 = getelementptr i8, ptr %52, i64 %65
  store i64 %67, ptr %68, align 8
  %69 = add i64 %64, 8
  %70 = icmp ugt i64 %69, %58
  br i1 %70, label %60, label %63

71:
  %72 = phi i64 [ %76, %71 ], [ %61, %60 ]
  %73 = getelementptr i8, ptr %56, i64 %72
  %74 = load i8, ptr %73, align 1
  %75 = getelementptr i8, ptr %52, i64 %72
  store i8 %74, ptr %75, align 1
  %76 = add nuw i64 %72, 1
  %77 = icmp eq i64 %76, %58
  br i1 %77, label %78, label %71

78:
  %79 = add nuw nsw i64 %48, 1
  %80 = load i64, ptr %35, align 8
  %81 = icmp slt i64 %79, %80
  br i1 %81, label %47, label %40

82:
  %83 = phi i64 [ 0, %44 ], [ %102, %92 ]
  %84 = load ptr, ptr %45, align 8
  %85 = getelementptr %struct.init, ptr %84, i64 %83
  %86 = getelementptr inbounds i8, ptr %85, i64 8
  %87 = load i64, ptr %86, align 8
  %88 = icmp slt i64 %87, 0
  br i1 %88, label %92, label %89

89:
  %90 = getelementptr i64, ptr %2, i64 %87
  %91 = load i64, ptr %90, align 8
  br label %92

92:
  %93 = phi i64 [ %91, %89 ], [ 0, %82 ]
  %94 = getelementptr inbounds i8, ptr %85, i64 16
  %95 = load i64, ptr %94, align 8
  %96 = add i64 %95, %93
  %97 = getelementptr inbounds i8, ptr %85, i64 24
  %98 = load i64, ptr %97, align 8
  %99 = mul i64 %98, %46
  %100 = add i64 %96, %99
  %101 = load ptr, ptr %85, align 8
  store i64 %100, ptr %101, align 8
  %102 = add nuw nsw i64 %83, 1
  %103 = load i64, ptr %41, align 8
  %104 = icmp slt i64 %102, %103
  br i1 %104, label %82, label %105

105:
  %106 = getelementptr inbounds i8, ptr %5, i64 16
  %107 = load ptr, ptr %106, align 8
  %108 = icmp eq ptr %107, null
  br i1 %108, label %120, label %109

109:
  %110 = getelementptr inbounds i8, ptr %5, i64 24
  %111 = load i64, ptr %110, align 8
  %112 = getelementptr inbounds i8, ptr %5, i64 144
  %113 = load ptr, ptr %112, align 8
  %114 = getelementptr inbounds i8, ptr %5, i64 152
  %115 = load ptr, ptr %114, align 8
  %116 = tail call i64 @run(ptr nonnull %107, i64 0, i64 %111, ptr %113, ptr %115) #6
  %117 = load i64, ptr %110, align 8
  %118 = icmp ne i64 %116, %117
  %119 = zext i1 %118 to i64
  store i64 %119, ptr %10, align 8
  br label %122

120:
  %121 = load i64, ptr %10, align 8
  br label %122

122:
  %123 = phi i64 [ %121, %120 ], [ %119, %109 ]
  %124 = icmp eq i64 %123, 0
  br i1 %124, label %125, label %211

125:
  %126 = load ptr, ptr %106, align 8
  %127 = icmp eq ptr %126, null
  br i1 %127, label %133, label %128

128:
  %129 = getelementptr inbounds i8, ptr %5, i64 32
  %130 = load ptr, ptr %129, align 8
  %131 = load i8, ptr %130, align 1
  %132 = icmp eq i8 %131, 0
  br i1 %132, label %211, label %133

133:
  %134 = load ptr, ptr %5, align 8
  %135 = getelementptr inbounds i8, ptr %5, i64 96
  %136 = load ptr, ptr %135, align 8
  %137 = getelementptr inbounds i8, ptr %5, i64 104
  %138 = load i64, ptr %137, align 8
  %139 = getelementptr %struct.move, ptr %136, i64 %138
  %140 = getelementptr inbounds i8, ptr %5, i64 160
  %141 = load i64, ptr %140, align 8
  %142 = getelementptr inbounds i8, ptr %5, i64 8
  %143 = load i64, ptr %142, align 8
  %144 = icmp eq i64 %143, 1
  br i1 %144, label %145, label %147

145:
  %146 = load ptr, ptr %134, align 8
  br label %147

147:
  %148 = phi ptr [ %146, %145 ], [ null, %133 ]
  %149 = icmp sgt i64 %34, 0
  br i1 %149, label %150, label %208

150:
  %151 = getelementptr inbounds i8, ptr %5, i64 144
  %152 = getelementptr inbounds i8, ptr %5, i64 152
  %153 = icmp eq ptr %148, null
  %154 = getelementptr inbounds i8, ptr %134, i64 8
  %155 = getelementptr inbounds i8, ptr %134, i64 16
  %156 = icmp ult ptr %136, %139
  %157 = getelementptr inbounds i8, ptr %5, i64 40
  br label %158

158:
  %159 = phi i1 [ true, %150 ], [ %202, %201 ]
  %160 = phi i64 [ %141, %150 ], [ %172, %201 ]
  %161 = phi i64 [ 0, %150 ], [ %195, %201 ]
  %162 = add i64 %160, -1
  %163 = icmp slt i64 %162, 0
  br i1 %163, label %164, label %171

164:
  %165 = load ptr, ptr %151, align 8
  %166 = load ptr, ptr %152, align 8
  %167 = tail call fastcc i32 @is_over(ptr %165, ptr %166) #6
  %168 = icmp eq i32 %167, 0
  br i1 %168, label %169, label %204

169:
  %170 = load i64, ptr %140, align 8
  br label %171

171:
  %172 = phi i64 [ %170, %169 ], [ %162, %158 ]
  br i1 %153, label %176, label %173

173:
  %174 = load i64, ptr %154, align 8
  %175 = load ptr, ptr %155, align 8
  tail call void %148(i64 0, i64 %174, ptr %175) #7
  br label %181

176:
  %177 = load ptr, ptr %151, align 8
  %178 = load ptr, ptr %152, align 8
  %179 = tail call i64 @run(ptr %134, i64 0, i64 %143, ptr %177, ptr %178) #6
  %180 = icmp eq i64 %179, %143
  br i1 %180, label %181, label %204

181:
  br i1 %156, label %182, label %194

182:
  %183 = phi ptr [ %192, %182 ], [ %136, %181 ]
  %184 = load ptr, ptr %183, align 8
  %185 = load i64, ptr %184, align 8
  %186 = getelementptr inbounds i8, ptr %183, i64 8
  %187 = load i64, ptr %186, align 8
  %188 = add i64 %187, %185
  %189 = getelementptr inbounds i8, ptr %183, i64 16
  %190 = load i64, ptr %189, align 8
  %191 = xor i64 %188, %190
  store i64 %191, ptr %184, align 8
  %192 = getelementptr i8, ptr %183, i64 24
  %193 = icmp ult ptr %192, %139
  br i1 %193, label %182, label %194

194:
  %195 = add nuw nsw i64 %161, 1
  %196 = load ptr, ptr %157, align 8
  %197 = icmp eq ptr %196, null
  br i1 %197, label %201, label %198

198:
  %199 = load i8, ptr %196, align 1
  %200 = icmp eq i8 %199, 0
  br i1 %200, label %211, label %201

201:
  %202 = icmp slt i64 %195, %34
  %203 = icmp eq i64 %195, %34
  br i1 %203, label %204, label %158

204:
  %205 = phi i64 [ %34, %201 ], [ %161, %164 ], [ %161, %176 ]
  %206 = phi i1 [ %202, %201 ], [ %159, %164 ], [ %159, %176 ]
  %207 = zext i1 %206 to i64
  br label %208

208:
  %209 = phi i64 [ 0, %147 ], [ %205, %204 ]
  %210 = phi i64 [ 0, %147 ], [ %207, %204 ]
  store i64 %210, ptr %10, align 8
  br label %211

211:
  %212 = phi i64 [ 0, %122 ], [ 0, %128 ], [ %209, %208 ], [ %195, %198 ]
  %213 = load i64, ptr %35, align 8
  %214 = icmp sgt i64 %213, 0
  br i1 %214, label %215, label %218

215:
  %216 = getelementptr inbounds i8, ptr %5, i64 112
  %217 = and i64 %212, 1
  br label %224

218:
  %219 = getelementptr inbounds i8, ptr %5, i64 136
  %220 = load i64, ptr %219, align 8
  %221 = icmp sgt i64 %220, 0
  br i1 %221, label %222, label %288

222:
  %223 = getelementptr inbounds i8, ptr %5, i64 128
  br label %261

224:
  %225 = phi i64 [ 0, %215 ], [ %258, %257 ]
  %226 = load ptr, ptr %216, align 8
  %227 = getelementptr %struct.carry, ptr %226, i64 %225
  %228 = getelementptr inbounds i8, ptr %227, i64 8
  %229 = load i64, ptr %228, align 8
  %230 = getelementptr i64, ptr %2, i64 %229
  %231 = load i64, ptr %230, align 8
  %232 = inttoptr i64 %231 to ptr
  %233 = getelementptr inbounds i8, ptr %227, i64 16
  %234 = getelementptr [2 x ptr], ptr %233, i64 0, i64 %217
  %235 = load ptr, ptr %234, align 8
  %236 = getelementptr inbounds i8, ptr %227, i64 32
  %237 = load i64, ptr %236, align 8
  %238 = icmp ult i64 %237, 8
  br i1 %238, label %239, label %242

239:
  %240 = phi i64 [ 0, %224 ], [ %243, %242 ]
  %241 = icmp ult i64 %240, %237
  br i1 %241, label %250, label %257

242:
  %243 = phi i64 [ %248, %242 ], [ 8, %224 ]
  %244 = phi i64 [ %243, %242 ], [ 0, %224 ]
  %245 = getelementptr i8, ptr %235, i64 %244
  %246 = load i64, ptr %245, align 8
  %247 = getelementptr i8, ptr %232, i64 %244
  store i64 %246, ptr %247, align 8
  %248 = add i64 %243, 8
  %249 = icmp ugt i64 %248, %237
  br i1 %249, label %239, label %242

250:
  %251 = phi i64 [ %255, %250 ], [ %240, %239 ]
  %252 = getelementptr i8, ptr %235, i64 %251
  %253 = load i8, ptr %252, align 1
  %254 = getelementptr i8, ptr %232, i64 %251
  store i8 %253, ptr %254, align 1
  %255 = add nuw i64 %251, 1
  %256 = icmp eq i64 %255, %237
  br i1 %256, label %257, label %250

257:
  %258 = add nuw nsw i64 %225, 1
  %259 = load i64, ptr %35, align 8
  %260 = icmp slt i64 %258, %259
  br i1 %260, label %224, label %218

261:
  %262 = phi i64 [ %220, %222 ], [ %285, %284 ]
  %263 = phi i64 [ 0, %222 ], [ %286, %284 ]
  %264 = load ptr, ptr %223, align 8
  %265 = getelementptr %struct.stack, ptr %264, i64 %263
  %266 = getelementptr inbounds i8, ptr %265, i64 8
  %267 = load i64, ptr %266, align 8
  %268 = mul i64 %267, %212
  %269 = getelementptr inbounds i8, ptr %265, i64 16
  %270 = load i64, ptr %269, align 8
  %271 = icmp ult i64 %268, %270
  br i1 %271, label %272, label %284

272:
  %273 = phi i64 [ %279, %272 ], [ %268, %261 ]
  %274 = load i64, ptr %265, align 8
  %275 = getelementptr i64, ptr %2, i64 %274
  %276 = load i64, ptr %275, align 8
  %277 = inttoptr i64 %276 to ptr
  %278 = getelementptr i8, ptr %277, i64 %273
  store i8 0, ptr %278, align 1
  %279 = add nuw i64 %273, 1
  %280 = load i64, ptr %269, align 8
  %281 = icmp ult i64 %279, %280
  br i1 %281, label %272, label %282

282:
  %283 = load i64, ptr %219, align 8
  br label %284

284:
  %285 = phi i64 [ %283, %282 ], [ %262, %261 ]
  %286 = add nuw nsw i64 %263, 1
  %287 = icmp slt i64 %286, %285
  br i1 %287, label %261, label %288

288:
  %289 = getelementptr inbounds i8, ptr %5, i64 64
  %290 = load i64, ptr %289, align 8
  %291 = icmp sgt i64 %290, -1
  br i1 %291, label %292, label %296

292:
  %293 = getelementptr i64, ptr %2, i64 %290
  %294 = load i64, ptr %293, align 8
  %295 = inttoptr i64 %294 to ptr
  store i64 %212, ptr %295, align 8
  br label %296

296:
  %297 = getelementptr inbounds i8, ptr %5, i64 72
  %298 = load i64, ptr %297, align 8
  %299 = icmp sgt i64 %298, -1
  br i1 %299, label %300, label %311

300:
  %301 = icmp eq i64 %212, 0
  %302 = select i1 %301, i64 32, i64 40
  %303 = getelementptr inbounds i8, ptr %5, i64 %302
  %304 = load ptr, ptr %303, align 8
  %305 = load i8, ptr %304, align 1
  %306 = icmp eq i8 %305, 0
  %307 = zext i1 %306 to i8
  %308 = getelementptr i64, ptr %2, i64 %298
  %309 = load i64, ptr %308, align 8
  %310 = inttoptr i64 %309 to ptr
  store i8 %307, ptr %310, align 1
  br label %311

311:
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
