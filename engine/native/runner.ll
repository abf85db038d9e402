; made of runner.c by scripts/runner_ir.py: 2e96cdc28ebeb19992fc4ac335d1ac32782b93a1c08f7dd88b6fea4157e34dce
%struct.step = type { ptr, i64, ptr, i64, i64, i64, i64, ptr }
%struct.bed = type { i32, [60 x i8] }

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
  %24 = tail call fastcc i32 @is_over(ptr %3, ptr %4) #3
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
  tail call void %32(i64 0, i64 %34, ptr %36) #4
  br label %47

37:
  %38 = getelementptr inbounds i8, ptr %10, i64 40
  %39 = load i64, ptr %38, align 8
  %40 = icmp eq i64 %39, 0
  br i1 %40, label %44, label %41

41:
  %42 = tail call fastcc i32 @run_shared(ptr nonnull %10, ptr %3, ptr %4) #3
  %43 = icmp eq i32 %42, 0
  br i1 %43, label %47, label %51

44:
  %45 = tail call fastcc i32 @run_alone(ptr nonnull %10, ptr %3, ptr %4) #3
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
  %16 = call i32 %15(i32 1, ptr nonnull %3) #4
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
  %17 = tail call fastcc i32 @run_alone(ptr nonnull %0, ptr %1, ptr %2) #3
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
  %46 = tail call i64 (i64, ...) %45(i64 202, ptr nonnull %41, i64 129, i64 1, ptr null) #4
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
  %63 = tail call fastcc i32 @is_over(ptr readonly %1, ptr nonnull %2) #3
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
  tail call void %4(i64 %68, i64 %70, ptr %6) #4
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
  %91 = tail call i64 (i64, ...) %89(i64 202, ptr nonnull %30, i64 128, i64 %90, ptr null) #4
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
  %14 = tail call fastcc i32 @is_over(ptr %1, ptr %2) #3
  %15 = icmp eq i32 %14, 0
  br i1 %15, label %16, label %23

16:
  %17 = mul i64 %13, %8
  %18 = udiv i64 %17, %10
  %19 = add i64 %17, %8
  %20 = udiv i64 %19, %10
  tail call void %4(i64 %18, i64 %20, ptr %6) #4
  %21 = add nuw i64 %13, 1
  %22 = icmp eq i64 %21, %10
  br i1 %22, label %23, label %12

23:
  %24 = phi i32 [ 0, %3 ], [ 0, %16 ], [ 1, %12 ]
  ret i32 %24
}

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
  %48 = tail call fastcc i32 @is_over(ptr readonly %37, ptr nonnull %0) #3
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
  tail call void %32(i64 %53, i64 %55, ptr %44) #4
  br label %56

56:
  %57 = atomicrmw add ptr %19, i32 1 seq_cst, align 64
  %58 = load atomic i32, ptr %20 seq_cst, align 8
  %59 = icmp eq i32 %58, 0
  br i1 %59, label %78, label %60

60:
  %61 = load ptr, ptr %12, align 8
  %62 = tail call i64 (i64, ...) %61(i64 202, ptr nonnull %19, i64 129, i64 1, ptr null) #4
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
  %76 = tail call i64 (i64, ...) %75(i64 202, ptr nonnull %4, i64 128, i64 1, ptr null) #4
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

declare void @llvm.x86.sse2.pause() #2

attributes #0 = { nounwind }
attributes #1 = { nounwind noinline }
attributes #2 = { nounwind }
attributes #3 = { nounwind }
attributes #4 = { nounwind }
