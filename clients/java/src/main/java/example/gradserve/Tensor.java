package example.gradserve;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.Arrays;

/**
 * An array with a dtype and a shape, whose elements lie row-major.
 *
 * <p>Made of a Java array, it has a copy of it. Made of a buffer, it shares the memory: what is written there is
 * written here, so do not, while a call is under way. Views such as {@link #doubles()} are its own memory, and
 * read-only.
 */
public final class Tensor implements Value {
    /** As many as NumPy's arrays have at most. */
    private static final int MOST_AXES = 64;
    /** The extents of a shape other than 0 make fewer bytes. */
    private static final long MOST_BYTES = 1L << 53;

    private final DType dtype;
    private final long[] shape;
    /**
     * The elements, little-endian; read-only, and read by copies of it, since position and order are the buffer's own.
     */
    private final ByteBuffer raw;

    private Tensor(DType dtype, long[] shape, ByteBuffer raw) {
        this.dtype = dtype;
        this.shape = shape.clone();
        this.raw = raw.slice().asReadOnlyBuffer();
        long wanted = byteCount(dtype, this.shape);
        if (wanted != raw.remaining()) {
            throw new InputException(this + " does not have " + raw.remaining() + " bytes");
        }
        if (dtype.kind == DType.Kind.BOOLEAN) {
            checkBooleans();
        }
    }

    private void checkBooleans() {
        for (int place = 0; place < raw.limit(); place++) {
            if ((raw.get(place) & ~1) != 0) {
                throw new InputException("the bytes of bool are 0 and 1, and these are others, too");
            }
        }
    }

    /** How many bytes a shape has. */
    private static long byteCount(DType dtype, long[] shape) {
        if (shape.length > MOST_AXES) {
            throw new InputException("a shape has at most " + MOST_AXES + " axes, and this one " + shape.length);
        }
        if (Arrays.stream(shape).anyMatch(extent -> extent < 0)) {
            throw new InputException("the extents of a shape are at least 0, and these are " + Arrays.toString(shape));
        }
        long total = dtype.size();
        for (long extent : shape) {
            long factor = Math.max(1, extent);
            if (total > (MOST_BYTES - 1) / factor) {
                throw new InputException(
                        "the shape "
                                + Arrays.toString(shape)
                                + " is too large: its extents other than 0 make 2^53 bytes or more");
            }
            total *= factor;
        }
        return Arrays.stream(shape).anyMatch(extent -> extent == 0) ? 0 : total;
    }

    /**
     * The tensor of float64 without axes.
     *
     * @param number its only element
     * @return the tensor
     */
    public static Tensor scalar(double number) {
        return of(new double[] {number});
    }

    /**
     * The tensor of float64 with one axis.
     *
     * @param numbers its elements
     * @return the tensor
     */
    public static Tensor vector(double... numbers) {
        return of(numbers, numbers.length);
    }

    /**
     * A tensor of float64.
     *
     * @param elements row-major
     * @param shape the extents; none are the shape of a single number
     * @return the tensor, with a copy of the elements
     * @throws InputException where they are more or fewer than the shape has
     */
    public static Tensor of(double[] elements, long... shape) {
        ByteBuffer room = room(DType.FLOAT64, elements.length);
        room.asDoubleBuffer().put(elements);
        return new Tensor(DType.FLOAT64, shape, room);
    }

    /**
     * A tensor of float32.
     *
     * @param elements row-major
     * @param shape the extents; none are the shape of a single number
     * @return the tensor, with a copy of the elements
     * @throws InputException where they are more or fewer than the shape has
     */
    public static Tensor of(float[] elements, long... shape) {
        ByteBuffer room = room(DType.FLOAT32, elements.length);
        room.asFloatBuffer().put(elements);
        return new Tensor(DType.FLOAT32, shape, room);
    }

    /**
     * A tensor of int64.
     *
     * @param elements row-major
     * @param shape the extents; none are the shape of a single number
     * @return the tensor, with a copy of the elements
     * @throws InputException where they are more or fewer than the shape has
     */
    public static Tensor of(long[] elements, long... shape) {
        ByteBuffer room = room(DType.INT64, elements.length);
        room.asLongBuffer().put(elements);
        return new Tensor(DType.INT64, shape, room);
    }

    /**
     * A tensor of int32. Of uint32 it is {@link #uint32}.
     *
     * @param elements row-major
     * @param shape the extents; none are the shape of a single number
     * @return the tensor, with a copy of the elements
     * @throws InputException where they are more or fewer than the shape has
     */
    public static Tensor of(int[] elements, long... shape) {
        ByteBuffer room = room(DType.INT32, elements.length);
        room.asIntBuffer().put(elements);
        return new Tensor(DType.INT32, shape, room);
    }

    /**
     * A tensor of uint32.
     *
     * @param bits the elements as their bits, as {@link Integer#parseUnsignedInt} has them
     * @param shape the extents; none are the shape of a single number
     * @return the tensor, with a copy of the elements
     * @throws InputException where they are more or fewer than the shape has
     */
    public static Tensor uint32(int[] bits, long... shape) {
        ByteBuffer room = room(DType.UINT32, bits.length);
        room.asIntBuffer().put(bits);
        return new Tensor(DType.UINT32, shape, room);
    }

    /**
     * A tensor of int16. Of float16 it is {@link #float16}.
     *
     * @param elements row-major
     * @param shape the extents; none are the shape of a single number
     * @return the tensor, with a copy of the elements
     * @throws InputException where they are more or fewer than the shape has
     */
    public static Tensor of(short[] elements, long... shape) {
        ByteBuffer room = room(DType.INT16, elements.length);
        room.asShortBuffer().put(elements);
        return new Tensor(DType.INT16, shape, room);
    }

    /**
     * A tensor of complex64.
     *
     * @param parts the elements row-major, each as its real part and then its imaginary one
     * @param shape the extents; none are the shape of a single number
     * @return the tensor, with a copy of the elements
     * @throws InputException where the parts are more or fewer than two for each element of the shape
     */
    public static Tensor complex64(float[] parts, long... shape) {
        ByteBuffer room = room(DType.FLOAT32, parts.length);
        room.asFloatBuffer().put(parts);
        return new Tensor(DType.COMPLEX64, shape, room);
    }

    /**
     * A tensor of complex128.
     *
     * @param parts the elements row-major, each as its real part and then its imaginary one
     * @param shape the extents; none are the shape of a single number
     * @return the tensor, with a copy of the elements
     * @throws InputException where the parts are more or fewer than two for each element of the shape
     */
    public static Tensor complex128(double[] parts, long... shape) {
        ByteBuffer room = room(DType.FLOAT64, parts.length);
        room.asDoubleBuffer().put(parts);
        return new Tensor(DType.COMPLEX128, shape, room);
    }

    /**
     * A tensor of int8. Of uint8 it is {@link #wrap}.
     *
     * @param elements row-major
     * @param shape the extents; none are the shape of a single number
     * @return the tensor, with a copy of the elements
     * @throws InputException where they are more or fewer than the shape has
     */
    public static Tensor of(byte[] elements, long... shape) {
        return new Tensor(DType.INT8, shape, ByteBuffer.wrap(elements.clone()));
    }

    /**
     * A tensor of bool.
     *
     * @param elements row-major
     * @param shape the extents; none are the shape of a single one
     * @return the tensor, with a copy of the elements
     * @throws InputException where they are more or fewer than the shape has
     */
    public static Tensor of(boolean[] elements, long... shape) {
        byte[] bytes = new byte[elements.length];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (elements[i] ? 1 : 0);
        }
        return new Tensor(DType.BOOL, shape, ByteBuffer.wrap(bytes));
    }

    /**
     * A tensor of float16.
     *
     * @param bits the elements as their bits, as of {@link Float16#fromDouble}
     * @param shape the extents; none are the shape of a single number
     * @return the tensor, with a copy of the elements
     * @throws InputException where they are more or fewer than the shape has
     */
    public static Tensor float16(short[] bits, long... shape) {
        ByteBuffer room = room(DType.FLOAT16, bits.length);
        room.asShortBuffer().put(bits);
        return new Tensor(DType.FLOAT16, shape, room);
    }

    /**
     * A tensor in the memory of a buffer, which is not copied.
     *
     * @param dtype what the elements are
     * @param elements their bytes between position and limit, row-major and little-endian, whatever the buffer's order
     *     is
     * @param shape the extents; none are the shape of a single number
     * @return the tensor
     * @throws InputException where the shape has more or fewer bytes
     */
    public static Tensor wrap(DType dtype, ByteBuffer elements, long... shape) {
        return new Tensor(dtype, shape, elements);
    }

    private static ByteBuffer room(DType dtype, int count) {
        if (count > Integer.MAX_VALUE / dtype.size()) {
            throw new InputException(count + " elements of " + dtype + " are more than a buffer can have");
        }
        return ByteBuffer.allocate(count * dtype.size()).order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * What the elements are.
     *
     * @return the dtype
     */
    public DType dtype() {
        return dtype;
    }

    /**
     * The extents of all axes.
     *
     * @return a copy
     */
    public long[] shape() {
        return shape.clone();
    }

    /**
     * The number of elements.
     *
     * @return as many as the shape has
     */
    public int size() {
        return raw.limit() / dtype.size();
    }

    int byteCount() {
        return raw.limit();
    }

    /**
     * The bytes of the elements.
     *
     * @return a view of this memory, little-endian and read-only
     */
    public ByteBuffer bytes() {
        return raw.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * The elements of a tensor of float64.
     *
     * @return a view of this memory, read-only
     * @throws InputException where they are of another dtype
     */
    public DoubleBuffer doubles() {
        return bytesOf(DType.FLOAT64).asDoubleBuffer();
    }

    /**
     * The elements of a tensor of float32.
     *
     * @return a view of this memory, read-only
     * @throws InputException where they are of another dtype
     */
    public FloatBuffer floats() {
        return bytesOf(DType.FLOAT32).asFloatBuffer();
    }

    /**
     * The elements of a tensor of int64.
     *
     * @return a view of this memory, read-only
     * @throws InputException where they are of another dtype
     */
    public LongBuffer longs() {
        return bytesOf(DType.INT64).asLongBuffer();
    }

    /**
     * The elements of a tensor of int32.
     *
     * @return a view of this memory, read-only
     * @throws InputException where they are of another dtype
     */
    public IntBuffer ints() {
        return bytesOf(DType.INT32).asIntBuffer();
    }

    /**
     * The elements of a tensor of int16.
     *
     * @return a view of this memory, read-only
     * @throws InputException where they are of another dtype
     */
    public ShortBuffer shorts() {
        return bytesOf(DType.INT16).asShortBuffer();
    }

    /**
     * The elements of a tensor of complex64, each as its real part and then its imaginary one.
     *
     * @return a view of this memory, read-only
     * @throws InputException where they are of another dtype
     */
    public FloatBuffer complex64Parts() {
        return bytesOf(DType.COMPLEX64).asFloatBuffer();
    }

    /**
     * The elements of a tensor of complex128, each as its real part and then its imaginary one.
     *
     * @return a view of this memory, read-only
     * @throws InputException where they are of another dtype
     */
    public DoubleBuffer complex128Parts() {
        return bytesOf(DType.COMPLEX128).asDoubleBuffer();
    }

    /**
     * The real part of an element of a complex tensor.
     *
     * @param place of the element, row-major
     * @return a number, exactly
     * @throws InputException where the elements are of another dtype
     * @throws IndexOutOfBoundsException where there is no such element
     */
    public double re(int place) {
        return partAt(2 * place);
    }

    /**
     * The imaginary part of an element of a complex tensor.
     *
     * @param place of the element, row-major
     * @return a number, exactly
     * @throws InputException where the elements are of another dtype
     * @throws IndexOutOfBoundsException where there is no such element
     */
    public double im(int place) {
        return partAt(2 * place + 1);
    }

    private double partAt(int place) {
        if (dtype.kind != DType.Kind.COMPLEX) {
            throw new InputException("the elements of this tensor are " + dtype + ", and not complex");
        }
        return floatAt(bytes(), place);
    }

    /**
     * The elements of a tensor of float16, as their bits.
     *
     * @return a view of this memory, read-only
     * @throws InputException where they are of another dtype
     */
    public ShortBuffer float16Bits() {
        return bytesOf(DType.FLOAT16).asShortBuffer();
    }

    /**
     * The elements of a tensor of uint32, as their bits: {@link #toLongs} has them as numbers.
     *
     * @return a view of this memory, read-only
     * @throws InputException where they are of another dtype
     */
    public IntBuffer uint32Bits() {
        return bytesOf(DType.UINT32).asIntBuffer();
    }

    private ByteBuffer bytesOf(DType wanted) {
        if (dtype != wanted) {
            throw new InputException("the elements of this tensor are " + dtype + ", and not " + wanted);
        }
        return bytes();
    }

    /**
     * The elements as doubles, exactly: those of every dtype but int64. Of complex numbers they are the real part, then
     * the imaginary one, of each.
     *
     * @return a new array
     * @throws InputException for int64, of which a double would not keep all digits
     */
    public double[] toDoubles() {
        if (dtype == DType.INT64) {
            throw new InputException("a double does not keep all digits of int64: toLongs does");
        }
        double[] elements = new double[numberCount()];
        ByteBuffer bytes = bytes();
        for (int place = 0; place < elements.length; place++) {
            elements[place] = hasFloats() ? floatAt(bytes, place) : wholeAt(bytes, place);
        }
        return elements;
    }

    /**
     * The elements as longs: those of integers, and of bool 0 and 1.
     *
     * @return a new array
     * @throws InputException for floats and complex numbers
     */
    public long[] toLongs() {
        if (hasFloats()) {
            throw new InputException("the elements of this tensor are " + dtype + ", and not whole numbers");
        }
        long[] elements = new long[size()];
        ByteBuffer bytes = bytes();
        for (int place = 0; place < elements.length; place++) {
            elements[place] = wholeAt(bytes, place);
        }
        return elements;
    }

    /**
     * The only element, as {@link #toDoubles} has it. Of a complex one it is {@link #re re(0)} and {@link #im im(0)}.
     *
     * @return a number
     * @throws InputException where there are several, or none, and for int64 and complex numbers
     */
    public double item() {
        if (size() != 1) {
            throw new InputException(this + " has " + size() + " elements, and not one");
        }
        if (dtype.kind == DType.Kind.COMPLEX) {
            throw new InputException("a complex number is no double: re(0) and im(0) are its parts");
        }
        return toDoubles()[0];
    }

    /** How many numbers the elements are: two of each complex one. */
    int numberCount() {
        return raw.limit() / dtype.parts().size();
    }

    boolean hasFloats() {
        return dtype.parts().kind == DType.Kind.FLOAT;
    }

    double floatAt(ByteBuffer bytes, int place) {
        return switch (dtype.parts()) {
            case FLOAT16 -> Float16.toDouble(bytes.getShort(2 * place));
            case FLOAT32 -> bytes.getFloat(4 * place);
            default -> bytes.getDouble(8 * place);
        };
    }

    long wholeAt(ByteBuffer bytes, int place) {
        return switch (dtype) {
            case INT8 -> bytes.get(place);
            case INT16 -> bytes.getShort(2 * place);
            case INT32 -> bytes.getInt(4 * place);
            case UINT32 -> Integer.toUnsignedLong(bytes.getInt(4 * place));
            case INT64 -> bytes.getLong(8 * place);
            default -> Byte.toUnsignedLong(bytes.get(place));
        };
    }

    /**
     * The tensor as the wire has it in JSON.
     *
     * @param form with {@link Form#JSON} as numbers, if JSON keeps them all, else with its bytes in base64
     * @return the text
     */
    public String toJson(Form form) {
        return TensorJson.encoded(this, form).toString();
    }

    /**
     * The tensor that the wire has in JSON, whatever its payload.
     *
     * @param text an object of JSON
     * @return the tensor
     * @throws MalformedAnswerException where it is none
     */
    public static Tensor fromJson(String text) {
        return MalformedAnswerException.unless(() -> TensorJson.decoded(Json.object(text)));
    }

    /** What kind of tensor it is; it does not show the elements. */
    @Override
    public String toString() {
        return dtype + Arrays.toString(shape);
    }
}
