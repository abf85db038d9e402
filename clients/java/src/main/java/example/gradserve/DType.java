package example.gradserve;

/** What the elements of a tensor are. Servers may know more of them than this client: as a word, any travels. */
public enum DType {
    /** True or false, a byte of 1 or 0. */
    BOOL("bool", "BOOL", 1, Kind.BOOLEAN, 1),
    /** Whole numbers of 8 bits, with a sign. */
    INT8("int8", "I8", 1, Kind.INTEGER, 1),
    /** Whole numbers of 8 bits, without a sign. */
    UINT8("uint8", "U8", 1, Kind.INTEGER, 1),
    /** Whole numbers of 16 bits. */
    INT16("int16", "I16", 2, Kind.INTEGER, 2),
    /** Whole numbers of 32 bits. */
    INT32("int32", "I32", 4, Kind.INTEGER, 1),
    /** Whole numbers of 32 bits, without a sign. */
    UINT32("uint32", "U32", 4, Kind.INTEGER, 2),
    /** Whole numbers of 64 bits. */
    INT64("int64", "I64", 8, Kind.INTEGER, 1),
    /** Numbers of IEEE 754 binary16: see {@link Float16}. */
    FLOAT16("float16", "F16", 2, Kind.FLOAT, 1),
    /** Numbers of IEEE 754 binary32. */
    FLOAT32("float32", "F32", 4, Kind.FLOAT, 1),
    /** Numbers of IEEE 754 binary64. */
    FLOAT64("float64", "F64", 8, Kind.FLOAT, 1),
    /** Complex numbers: two of {@link #FLOAT32}, the real part first. */
    COMPLEX64("complex64", "C64", 8, Kind.COMPLEX, 2),
    /** Complex numbers: two of {@link #FLOAT64}, the real part first. */
    COMPLEX128("complex128", "", 16, Kind.COMPLEX, 2);

    enum Kind { BOOLEAN, INTEGER, FLOAT, COMPLEX }

    private final String word;
    /** How the safetensors format spells it; empty where it lacks it. */
    final String spelling;
    private final int size;
    final Kind kind;
    /** The opset that graphs have it since. */
    final int since;

    DType(String word, String spelling, int size, Kind kind, int since) {
        this.word = word;
        this.spelling = spelling;
        this.size = size;
        this.kind = kind;
        this.since = since;
    }

    /**
     * The dtype of a word of the wire.
     *
     * @param word such as {@code float32}
     * @return its dtype
     * @throws InputException where this client has no such dtype
     */
    public static DType of(String word) {
        for (DType dtype : values()) {
            if (dtype.word.equals(word)) {
                return dtype;
            }
        }
        throw new InputException("'" + word + "' is no dtype of this client, which has bool, int8, uint8, int16, "
            + "int32, uint32, int64, float16, float32, float64, complex64 and complex128");
    }

    static DType spelled(String spelling) {
        for (DType dtype : values()) {
            if (!spelling.isEmpty() && dtype.spelling.equals(spelling)) {
                return dtype;
            }
        }
        throw new InputException("the dtype of a file is '" + spelling + "', which this client cannot read");
    }

    /** The dtype of the numbers that an element travels as: of a complex number that of its parts. */
    DType parts() {
        return switch (this) {
            case COMPLEX64 -> FLOAT32;
            case COMPLEX128 -> FLOAT64;
            default -> this;
        };
    }

    /** The dtype of complex numbers that have parts of this one. */
    DType ofParts() {
        return switch (this) {
            case FLOAT32 -> COMPLEX64;
            case FLOAT64 -> COMPLEX128;
            default -> throw new InputException("complex numbers do not have parts of " + this);
        };
    }

    /**
     * Its word on the wire.
     *
     * @return such as {@code float32}
     */
    public String word() {
        return word;
    }

    /**
     * How long an element is.
     *
     * @return its bytes
     */
    public int size() {
        return size;
    }

    @Override
    public String toString() {
        return word;
    }
}
