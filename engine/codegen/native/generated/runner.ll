; made of runner.c by scripts/runner_ir.py: 44386fc806d3767eb2b6a12e3bad5d9fb91eab2ba79ce36d19dc372ac0c515f5
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
  %6 = icmp slt i64 %0, %1
  br i1 %6, label %7, label %395

7:
  %8 = getelementptr inbounds i8, ptr %5, i64 168
  store i64 0, ptr %8, align 8
  %9 = getelementptr inbounds i8, ptr %5, i64 224
  %10 = load i64, ptr %9, align 8
  %11 = icmp eq i64 %10, 0
  br i1 %11, label %18, label %12

12:
  store i64 0, ptr %9, align 8
  %13 = getelementptr inbounds i8, ptr %5, i64 200
  %14 = load i64, ptr %13, align 8
  %15 = add i64 %14, 1
  store i64 %15, ptr %13, align 8
  %16 = getelementptr inbounds i8, ptr %5, i64 192
  %17 = load i64, ptr %16, align 8
  br label %124

18:
  %19 = getelementptr inbounds i8, ptr %5, i64 48
  %20 = load i64, ptr %19, align 8
  %21 = getelementptr inbounds i8, ptr %5, i64 176
  %22 = load i64, ptr %21, align 8
  %23 = icmp sgt i64 %22, -1
  br i1 %23, label %24, label %33

24:
  %25 = getelementptr i64, ptr %2, i64 %22
  %26 = load i64, ptr %25, align 8
  %27 = inttoptr i64 %26 to ptr
  %28 = load i8, ptr %27, align 1
  %29 = sext i8 %28 to i64
  %30 = getelementptr inbounds i8, ptr %5, i64 184
  %31 = load i64, ptr %30, align 8
  %32 = icmp eq i64 %31, %29
  br i1 %32, label %33, label %395

33:
  %34 = getelementptr inbounds i8, ptr %5, i64 56
  %35 = load i64, ptr %34, align 8
  %36 = icmp sgt i64 %35, -1
  br i1 %36, label %37, label %43

37:
  %38 = getelementptr i64, ptr %2, i64 %35
  %39 = load i64, ptr %38, align 8
  %40 = inttoptr i64 %39 to ptr
  %41 = load i64, ptr %40, align 8
  %42 = tail call i64 @llvm.smin.i64(i64 %41, i64 %20)
  br label %43

43:
  %44 = phi i64 [ %20, %33 ], [ %42, %37 ]
  %45 = getelementptr inbounds i8, ptr %5, i64 120
  %46 = load i64, ptr %45, align 8
  %47 = icmp sgt i64 %46, 0
  br i1 %47, label %48, label %50

48:
  %49 = getelementptr inbounds i8, ptr %5, i64 112
  br label %57

50:
  %51 = getelementptr inbounds i8, ptr %5, i64 88
  %52 = load i64, ptr %51, align 8
  %53 = icmp sgt i64 %52, 0
  br i1 %53, label %54, label %115

54:
  %55 = getelementptr inbounds i8, ptr %5, i64 80
  %56 = add i64 %44, -1
  br label %92

57:
  %58 = phi i64 [ 0, %48 ], [ %89, %88 ]
  %59 = load ptr, ptr %49, align 8
  %60 = getelementptr %struct.carry, ptr %59, i64 %58
  %61 = getelementptr inbounds i8, ptr %60, i64 16
  %62 = load ptr, ptr %61, align 8
  %63 = load i64, ptr %60, align 8
  %64 = getelementptr i64, ptr %2, i64 %63
  %65 = load i64, ptr %64, align 8
  %66 = inttoptr i64 %65 to ptr
  %67 = getelementptr inbounds i8, ptr %60, i64 32
  %68 = load i64, ptr %67, align 8
  %69 = icmp ult i64 %68, 8
  br i1 %69, label %70, label %73

70:
  %71 = phi i64 [ 0, %57 ], [ %74, %73 ]
  %72 = icmp ult i64 %71, %68
  br i1 %72, label %81, label %88

73:
  %74 = phi i64 [ %79, %73 ], [ 8, %57 ]
  %75 = phi i64 [ %74, %73 ], [ 0, %57 ]
  %76 = getelementptr i8, ptr %66, i64 %75
  %77 = load i64, ptr %76, align 8
  %78 = getelementptr i8, ptr %62, i64 %75
  store i64 %77, ptr %78, align 8
  %79 = add i64 %74, 8
  %80 = icmp ugt i64 %79, %68
  br i1 %80, label %70, label %73

81:
  %82 = phi i64 [ %86, %81 ], [ %71, %70 ]
  %83 = getelementptr i8, ptr %66, i64 %82
  %84 = load i8, ptr %83, align 1
  %85 = getelementptr i8, ptr %62, i64 %82
  store i8 %84, ptr %85, align 1
  %86 = add nuw i64 %82, 1
  %87 = icmp eq i64 %86, %68
  br i1 %87, label %88, label %81

88:
  %89 = add nuw nsw i64 %58, 1
  %90 = load i64, ptr %45, align 8
  %91 = icmp slt i64 %89, %90
  br i1 %91, label %57, label %50

92:
  %93 = phi i64 [ 0, %54 ], [ %112, %102 ]
  %94 = load ptr, ptr %55, align 8
  %95 = getelementptr %struct.init, ptr %94, i64 %93
  %96 = getelementptr inbounds i8, ptr %95, i64 8
  %97 = load i64, ptr %96, align 8
  %98 = icmp slt i64 %97, 0
  br i1 %98, label %102, label %99

99:
  %100 = getelementptr i64, ptr %2, i64 %97
  %101 = load i64, ptr %100, align 8
  br label %102

102:
  %103 = phi i64 [ %101, %99 ], [ 0, %92 ]
  %104 = getelementptr inbounds i8, ptr %95, i64 16
  %105 = load i64, ptr %104, align 8
  %106 = add i64 %105, %103
  %107 = getelementptr inbounds i8, ptr %95, i64 24
  %108 = load i64, ptr %107, align 8
  %109 = mul i64 %108, %56
  %110 = add i64 %106, %109
  %111 = load ptr, ptr %95, align 8
  store i64 %110, ptr %111, align 8
  %112 = add nuw nsw i64 %93, 1
  %113 = load i64, ptr %51, align 8
  %114 = icmp slt i64 %112, %113
  br i1 %114, label %92, label %115

115:
  %116 = getelementptr inbounds i8, ptr %5, i64 16
  %117 = load ptr, ptr %116, align 8
  %118 = icmp ne ptr %117, null
  %119 = zext i1 %118 to i64
  %120 = getelementptr inbounds i8, ptr %5, i64 192
  store i64 %119, ptr %120, align 8
  %121 = getelementptr inbounds i8, ptr %5, i64 216
  store i64 0, ptr %121, align 8
  %122 = getelementptr inbounds i8, ptr %5, i64 200
  store i64 0, ptr %122, align 8
  %123 = getelementptr inbounds i8, ptr %5, i64 208
  store i64 %44, ptr %123, align 8
  br label %124

124:
  %125 = phi i64 [ 0, %115 ], [ %15, %12 ]
  %126 = phi i64 [ %119, %115 ], [ %17, %12 ]
  %127 = getelementptr inbounds i8, ptr %5, i64 192
  %128 = icmp eq i64 %126, 0
  br i1 %128, label %149, label %129

129:
  %130 = getelementptr inbounds i8, ptr %5, i64 16
  %131 = load ptr, ptr %130, align 8
  %132 = getelementptr inbounds i8, ptr %5, i64 200
  %133 = getelementptr inbounds i8, ptr %5, i64 24
  %134 = load i64, ptr %133, align 8
  %135 = getelementptr inbounds i8, ptr %5, i64 144
  %136 = load ptr, ptr %135, align 8
  %137 = getelementptr inbounds i8, ptr %5, i64 152
  %138 = load ptr, ptr %137, align 8
  %139 = tail call i64 @run(ptr %131, i64 %125, i64 %134, ptr %136, ptr %138) #6
  store i64 %139, ptr %132, align 8
  %140 = load i64, ptr %133, align 8
  %141 = icmp eq i64 %139, %140
  br i1 %141, label %142, label %293

142:
  store i64 0, ptr %132, align 8
  store i64 0, ptr %127, align 8
  %143 = getelementptr inbounds i8, ptr %5, i64 32
  %144 = load ptr, ptr %143, align 8
  %145 = load i8, ptr %144, align 1
  %146 = icmp eq i8 %145, 0
  br i1 %146, label %147, label %149

147:
  %148 = getelementptr inbounds i8, ptr %5, i64 208
  store i64 0, ptr %148, align 8
  br label %149

149:
  %150 = phi i64 [ 0, %142 ], [ 0, %147 ], [ %125, %124 ]
  %151 = getelementptr inbounds i8, ptr %5, i64 232
  %152 = load ptr, ptr %151, align 8
  %153 = icmp eq ptr %152, null
  br i1 %153, label %210, label %154

154:
  %155 = getelementptr inbounds i8, ptr %5, i64 96
  %156 = load ptr, ptr %155, align 8
  %157 = getelementptr inbounds i8, ptr %5, i64 104
  %158 = load i64, ptr %157, align 8
  %159 = getelementptr %struct.move, ptr %156, i64 %158
  %160 = getelementptr inbounds i8, ptr %5, i64 216
  %161 = getelementptr inbounds i8, ptr %5, i64 208
  %162 = load i64, ptr %160, align 8
  %163 = load i64, ptr %161, align 8
  %164 = icmp slt i64 %162, %163
  br i1 %164, label %165, label %294

165:
  %166 = getelementptr inbounds i8, ptr %5, i64 160
  %167 = getelementptr inbounds i8, ptr %5, i64 144
  %168 = getelementptr inbounds i8, ptr %5, i64 152
  %169 = getelementptr inbounds i8, ptr %5, i64 8
  %170 = getelementptr inbounds i8, ptr %5, i64 200
  %171 = icmp ult ptr %156, %159
  br label %172

172:
  %173 = phi i64 [ %163, %165 ], [ %208, %205 ]
  %174 = phi i64 [ %162, %165 ], [ %207, %205 ]
  %175 = sub i64 %173, %174
  %176 = load i64, ptr %166, align 8
  %177 = tail call i64 @llvm.smin.i64(i64 %175, i64 %176)
  %178 = icmp eq i64 %174, 0
  br i1 %178, label %185, label %179

179:
  %180 = load ptr, ptr %167, align 8
  %181 = load ptr, ptr %168, align 8
  %182 = tail call fastcc i32 @is_over(ptr %180, ptr %181) #6
  %183 = icmp eq i32 %182, 0
  br i1 %183, label %185, label %184

184:
  store i64 -1, ptr %170, align 8
  br label %293

185:
  %186 = load ptr, ptr %151, align 8
  store i64 %177, ptr %186, align 8
  %187 = load ptr, ptr %5, align 8
  %188 = load i64, ptr %169, align 8
  %189 = load ptr, ptr %167, align 8
  %190 = load ptr, ptr %168, align 8
  %191 = tail call i64 @run(ptr %187, i64 0, i64 %188, ptr %189, ptr %190) #6
  store i64 %191, ptr %170, align 8
  %192 = load i64, ptr %169, align 8
  %193 = icmp eq i64 %191, %192
  br i1 %193, label %194, label %293

194:
  br i1 %171, label %195, label %205

195:
  %196 = phi ptr [ %203, %195 ], [ %156, %194 ]
  %197 = getelementptr inbounds i8, ptr %196, i64 8
  %198 = load i64, ptr %197, align 8
  %199 = mul i64 %198, %177
  %200 = load ptr, ptr %196, align 8
  %201 = load i64, ptr %200, align 8
  %202 = add i64 %201, %199
  store i64 %202, ptr %200, align 8
  %203 = getelementptr i8, ptr %196, i64 24
  %204 = icmp ult ptr %203, %159
  br i1 %204, label %195, label %205

205:
  %206 = load i64, ptr %160, align 8
  %207 = add i64 %206, %177
  store i64 %207, ptr %160, align 8
  %208 = load i64, ptr %161, align 8
  %209 = icmp slt i64 %207, %208
  br i1 %209, label %172, label %294

210:
  %211 = load ptr, ptr %5, align 8
  %212 = getelementptr inbounds i8, ptr %5, i64 96
  %213 = load ptr, ptr %212, align 8
  %214 = getelementptr inbounds i8, ptr %5, i64 104
  %215 = load i64, ptr %214, align 8
  %216 = getelementptr %struct.move, ptr %213, i64 %215
  %217 = getelementptr inbounds i8, ptr %5, i64 160
  %218 = load i64, ptr %217, align 8
  %219 = getelementptr inbounds i8, ptr %5, i64 216
  %220 = load i64, ptr %219, align 8
  %221 = getelementptr inbounds i8, ptr %5, i64 208
  %222 = load i64, ptr %221, align 8
  %223 = getelementptr inbounds i8, ptr %5, i64 200
  %224 = getelementptr inbounds i8, ptr %5, i64 8
  %225 = load i64, ptr %224, align 8
  %226 = icmp eq i64 %225, 1
  br i1 %226, label %227, label %229

227:
  %228 = load ptr, ptr %211, align 8
  br label %229

229:
  %230 = phi ptr [ %228, %227 ], [ null, %210 ]
  %231 = getelementptr inbounds i8, ptr %5, i64 144
  %232 = icmp slt i64 %220, %222
  br i1 %232, label %233, label %288

233:
  %234 = getelementptr inbounds i8, ptr %5, i64 152
  %235 = icmp eq ptr %230, null
  %236 = getelementptr inbounds i8, ptr %211, i64 8
  %237 = getelementptr inbounds i8, ptr %211, i64 16
  %238 = icmp ult ptr %213, %216
  %239 = getelementptr inbounds i8, ptr %5, i64 40
  br label %240

240:
  %241 = phi i64 [ %218, %233 ], [ %255, %285 ]
  %242 = phi i64 [ %220, %233 ], [ %278, %285 ]
  %243 = phi i64 [ %150, %233 ], [ 0, %285 ]
  %244 = phi i64 [ %222, %233 ], [ %286, %285 ]
  %245 = add i64 %241, -1
  %246 = icmp slt i64 %245, 0
  br i1 %246, label %247, label %254

247:
  %248 = load ptr, ptr %231, align 8
  %249 = load ptr, ptr %234, align 8
  %250 = tail call fastcc i32 @is_over(ptr %248, ptr %249) #6
  %251 = icmp eq i32 %250, 0
  br i1 %251, label %252, label %288

252:
  %253 = load i64, ptr %217, align 8
  br label %254

254:
  %255 = phi i64 [ %253, %252 ], [ %245, %240 ]
  br i1 %235, label %259, label %256

256:
  %257 = load i64, ptr %236, align 8
  %258 = load ptr, ptr %237, align 8
  tail call void %230(i64 0, i64 %257, ptr %258) #7
  br label %264

259:
  %260 = load ptr, ptr %231, align 8
  %261 = load ptr, ptr %234, align 8
  %262 = tail call i64 @run(ptr %211, i64 %243, i64 %225, ptr %260, ptr %261) #6
  %263 = icmp eq i64 %262, %225
  br i1 %263, label %264, label %288

264:
  br i1 %238, label %265, label %277

265:
  %266 = phi ptr [ %275, %265 ], [ %213, %264 ]
  %267 = load ptr, ptr %266, align 8
  %268 = load i64, ptr %267, align 8
  %269 = getelementptr inbounds i8, ptr %266, i64 8
  %270 = load i64, ptr %269, align 8
  %271 = add i64 %270, %268
  %272 = getelementptr inbounds i8, ptr %266, i64 16
  %273 = load i64, ptr %272, align 8
  %274 = xor i64 %271, %273
  store i64 %274, ptr %267, align 8
  %275 = getelementptr i8, ptr %266, i64 24
  %276 = icmp ult ptr %275, %216
  br i1 %276, label %265, label %277

277:
  %278 = add nsw i64 %242, 1
  %279 = load ptr, ptr %239, align 8
  %280 = icmp eq ptr %279, null
  br i1 %280, label %285, label %281

281:
  %282 = load i8, ptr %279, align 1
  %283 = icmp eq i8 %282, 0
  %284 = select i1 %283, i64 %278, i64 %244
  br label %285

285:
  %286 = phi i64 [ %244, %277 ], [ %284, %281 ]
  %287 = icmp slt i64 %278, %286
  br i1 %287, label %240, label %288

288:
  %289 = phi i64 [ %222, %229 ], [ %286, %285 ], [ %244, %259 ], [ %244, %247 ]
  %290 = phi i64 [ %220, %229 ], [ %278, %285 ], [ %242, %259 ], [ %242, %247 ]
  %291 = phi i64 [ %150, %229 ], [ 0, %285 ], [ %262, %259 ], [ -1, %247 ]
  store i64 %290, ptr %219, align 8
  store i64 %291, ptr %223, align 8
  %292 = icmp slt i64 %290, %289
  br i1 %292, label %293, label %294

293:
  store i64 1, ptr %8, align 8
  br label %395

294:
  %295 = phi i64 [ %162, %154 ], [ %290, %288 ], [ %207, %205 ]
  %296 = getelementptr inbounds i8, ptr %5, i64 120
  %297 = load i64, ptr %296, align 8
  %298 = icmp sgt i64 %297, 0
  br i1 %298, label %299, label %302

299:
  %300 = getelementptr inbounds i8, ptr %5, i64 112
  %301 = and i64 %295, 1
  br label %308

302:
  %303 = getelementptr inbounds i8, ptr %5, i64 136
  %304 = load i64, ptr %303, align 8
  %305 = icmp sgt i64 %304, 0
  br i1 %305, label %306, label %372

306:
  %307 = getelementptr inbounds i8, ptr %5, i64 128
  br label %345

308:
  %309 = phi i64 [ 0, %299 ], [ %342, %341 ]
  %310 = load ptr, ptr %300, align 8
  %311 = getelementptr %struct.carry, ptr %310, i64 %309
  %312 = getelementptr inbounds i8, ptr %311, i64 8
  %313 = load i64, ptr %312, align 8
  %314 = getelementptr i64, ptr %2, i64 %313
  %315 = load i64, ptr %314, align 8
  %316 = inttoptr i64 %315 to ptr
  %317 = getelementptr inbounds i8, ptr %311, i64 16
  %318 = getelementptr [2 x ptr], ptr %317, i64 0, i64 %301
  %319 = load ptr, ptr %318, align 8
  %320 = getelementptr inbounds i8, ptr %311, i64 32
  %321 = load i64, ptr %320, align 8
  %322 = icmp ult i64 %321, 8
  br i1 %322, label %323, label %326

323:
  %324 = phi i64 [ 0, %308 ], [ %327, %326 ]
  %325 = icmp ult i64 %324, %321
  br i1 %325, label %334, label %341

326:
  %327 = phi i64 [ %332, %326 ], [ 8, %308 ]
  %328 = phi i64 [ %327, %326 ], [ 0, %308 ]
  %329 = getelementptr i8, ptr %319, i64 %328
  %330 = load i64, ptr %329, align 8
  %331 = getelementptr i8, ptr %316, i64 %328
  store i64 %330, ptr %331, align 8
  %332 = add i64 %327, 8
  %333 = icmp ugt i64 %332, %321
  br i1 %333, label %323, label %326

334:
  %335 = phi i64 [ %339, %334 ], [ %324, %323 ]
  %336 = getelementptr i8, ptr %319, i64 %335
  %337 = load i8, ptr %336, align 1
  %338 = getelementptr i8, ptr %316, i64 %335
  store i8 %337, ptr %338, align 1
  %339 = add nuw i64 %335, 1
  %340 = icmp eq i64 %339, %321
  br i1 %340, label %341, label %334

341:
  %342 = add nuw nsw i64 %309, 1
  %343 = load i64, ptr %296, align 8
  %344 = icmp slt i64 %342, %343
  br i1 %344, label %308, label %302

345:
  %346 = phi i64 [ %304, %306 ], [ %369, %368 ]
  %347 = phi i64 [ 0, %306 ], [ %370, %368 ]
  %348 = load ptr, ptr %307, align 8
  %349 = getelementptr %struct.stack, ptr %348, i64 %347
  %350 = getelementptr inbounds i8, ptr %349, i64 8
  %351 = load i64, ptr %350, align 8
  %352 = mul i64 %351, %295
  %353 = getelementptr inbounds i8, ptr %349, i64 16
  %354 = load i64, ptr %353, align 8
  %355 = icmp ult i64 %352, %354
  br i1 %355, label %356, label %368

356:
  %357 = phi i64 [ %363, %356 ], [ %352, %345 ]
  %358 = load i64, ptr %349, align 8
  %359 = getelementptr i64, ptr %2, i64 %358
  %360 = load i64, ptr %359, align 8
  %361 = inttoptr i64 %360 to ptr
  %362 = getelementptr i8, ptr %361, i64 %357
  store i8 0, ptr %362, align 1
  %363 = add nuw i64 %357, 1
  %364 = load i64, ptr %353, align 8
  %365 = icmp ult i64 %363, %364
  br i1 %365, label %356, label %366

366:
  %367 = load i64, ptr %303, align 8
  br label %368

368:
  %369 = phi i64 [ %367, %366 ], [ %346, %345 ]
  %370 = add nuw nsw i64 %347, 1
  %371 = icmp slt i64 %370, %369
  br i1 %371, label %345, label %372

372:
  %373 = getelementptr inbounds i8, ptr %5, i64 64
  %374 = load i64, ptr %373, align 8
  %375 = icmp sgt i64 %374, -1
  br i1 %375, label %376, label %380

376:
  %377 = getelementptr i64, ptr %2, i64 %374
  %378 = load i64, ptr %377, align 8
  %379 = inttoptr i64 %378 to ptr
  store i64 %295, ptr %379, align 8
  br label %380

380:
  %381 = getelementptr inbounds i8, ptr %5, i64 72
  %382 = load i64, ptr %381, align 8
  %383 = icmp sgt i64 %382, -1
  br i1 %383, label %384, label %395

384:
  %385 = icmp eq i64 %295, 0
  %386 = select i1 %385, i64 32, i64 40
  %387 = getelementptr inbounds i8, ptr %5, i64 %386
  %388 = load ptr, ptr %387, align 8
  %389 = load i8, ptr %388, align 1
  %390 = icmp eq i8 %389, 0
  %391 = zext i1 %390 to i8
  %392 = getelementptr i64, ptr %2, i64 %382
  %393 = load i64, ptr %392, align 8
  %394 = inttoptr i64 %393 to ptr
  store i8 %391, ptr %394, align 1
  br label %395

395:
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
