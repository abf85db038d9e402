package example.gradserve.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import example.gradserve.DType;
import example.gradserve.Form;
import example.gradserve.InputException;
import example.gradserve.MalformedAnswerException;
import example.gradserve.Safetensors;
import example.gradserve.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TensorTest {
    @Test
    void aBufferIsSharedAndAnArrayIsCopied() {
        ByteBuffer memory = ByteBuffer.allocateDirect(16).order(ByteOrder.LITTLE_ENDIAN);
        double[] array = {1, 2};
        Tensor shared = Tensor.wrap(DType.FLOAT64, memory, 2);
        Tensor copied = Tensor.vector(array);
        memory.putDouble(8, 7);
        array[1] = 7;
        assertEquals(7, shared.doubles().get(1));
        assertEquals(2, copied.doubles().get(1));
    }

    @Test
    void aFileIsReadWhereItLies() {
        Tensor tensor = Tensor.of(new float[] {1, 2}, 2, 1);
        List<ByteBuffer> pieces = new Safetensors(Map.of("t", tensor), Map.of("k", "v")).pieces();
        ByteBuffer file = ByteBuffer.allocate(pieces.stream().mapToInt(ByteBuffer::remaining).sum());
        pieces.forEach(piece -> file.put(piece.duplicate()));
        Safetensors read = Safetensors.read(file.flip());
        file.order(ByteOrder.LITTLE_ENDIAN).putFloat(file.limit() - 4, 7);
        assertEquals(7, read.tensor("t").floats().get(1));
        assertEquals(Map.of("k", "v"), read.metadata());
        assertThrows(MalformedAnswerException.class, () -> read.tensor("u"));
    }

    @Test
    void viewsAreReadOnlyAndOfOneDtype() {
        Tensor tensor = Tensor.vector(1, 2);
        assertTrue(tensor.doubles().isReadOnly());
        assertTrue(tensor.bytes().isReadOnly());
        assertThrows(InputException.class, tensor::floats);
    }

    @Test
    void everyDtypeIsReadAsNumbersThatKeepIt() {
        assertArrayEquals(new double[] {0.5}, Tensor.float16(new short[] {0x3800}, 1).toDoubles());
        assertArrayEquals(new double[] {-1}, Tensor.of(new byte[] {-1}, 1).toDoubles());
        assertArrayEquals(new double[] {255}, Tensor.wrap(DType.UINT8, ByteBuffer.wrap(new byte[] {-1}), 1).toDoubles());
        Tensor words = Tensor.uint32(new int[] {0, -1}, 2);
        assertArrayEquals(new long[] {0, 4294967295L}, words.toLongs());
        assertArrayEquals(new double[] {0, 4294967295.0}, words.toDoubles());
        assertEquals(-1, words.uint32Bits().get(1));
        assertThrows(InputException.class, words::ints);
        assertArrayEquals(new long[] {1, 0}, Tensor.of(new boolean[] {true, false}, 2).toLongs());
        assertArrayEquals(new long[] {Long.MAX_VALUE}, Tensor.of(new long[] {Long.MAX_VALUE}, 1).toLongs());
        assertArrayEquals(new long[] {-3}, Tensor.of(new int[] {-3}, 1).toLongs());
        assertThrows(InputException.class, Tensor.of(new long[] {1}, 1)::toDoubles);
        assertThrows(InputException.class, Tensor.scalar(1)::toLongs);
    }

    @Test
    void complexNumbersAreTheirParts() {
        Tensor tensor = Tensor.complex128(new double[] {1, -2, -0.0, 0.5}, 1, 2);
        assertEquals(2, tensor.size());
        assertEquals(-2, tensor.im(0));
        assertEquals(-0.0, tensor.re(1));
        assertArrayEquals(new double[] {1, -2, -0.0, 0.5}, tensor.toDoubles());
        assertEquals(0.5, tensor.complex128Parts().get(3));
        Tensor single = Tensor.complex64(new float[] {3, -4});
        assertEquals(-4, single.complex64Parts().get(1));
        assertEquals("complex64[]", single.toString());
        assertArrayEquals(new long[] {-32768}, Tensor.of(new short[] {Short.MIN_VALUE}, 1).toLongs());
        assertEquals(7, Tensor.of(new short[] {7}).shorts().get(0));
        assertThrows(InputException.class, single::item);
        assertThrows(InputException.class, single::toLongs);
        assertThrows(InputException.class, single::floats);
        assertThrows(InputException.class, () -> Tensor.scalar(1).im(0));
        assertThrows(IndexOutOfBoundsException.class, () -> single.re(1));
        assertThrows(InputException.class, () -> Tensor.complex128(new double[] {1, 2}, 2));
    }

    @Test
    void complexNumbersTravelAsTheirParts() {
        Tensor tensor = Tensor.complex64(new float[] {1, -2, -0.0f, 0.5f}, 1, 2);
        assertTrue(tensor.toJson(Form.JSON).contains("[1.0,-2.0,-0.0,0.5]"), tensor.toJson(Form.JSON));
        for (Form form : List.of(Form.JSON, Form.BASE64)) {
            assertEquals(tensor.bytes(), Tensor.fromJson(tensor.toJson(form)).bytes());
        }
        assertTrue(Tensor.complex128(new double[] {0, Double.NaN}).toJson(Form.JSON).contains("data_b64"));
        Map<String, Tensor> tensors = Map.of("é", tensor, "x", Tensor.scalar(1));
        List<ByteBuffer> pieces = new Safetensors(tensors, Map.of("k", "v")).pieces();
        String header = StandardCharsets.UTF_8.decode(pieces.get(0).duplicate()).toString();
        assertTrue(header.contains("\"complex\":\"[\\\"é\\\"]\"") && header.contains("[1,2,2]"), header);
        ByteBuffer file = ByteBuffer.allocate(pieces.stream().mapToInt(ByteBuffer::remaining).sum());
        pieces.forEach(piece -> file.put(piece.duplicate()));
        Safetensors read = Safetensors.read(file.flip());
        assertEquals(Map.of("k", "v"), read.metadata());
        assertEquals(DType.FLOAT64, read.tensor("x").dtype());
        assertEquals("complex64[1, 2]", read.tensor("é").toString());
        assertEquals(tensor.bytes(), read.tensor("é").bytes());
    }

    @Test
    void whatIsSaidToBeComplexHasALastAxisOfTwo() {
        String named = "\"[\\\"t\\\"]\"";
        assertEquals("complex128[]", file(named, "F64", "[2]").tensor("t").toString());
        assertEquals("complex64[2]", file("\"[]\"", "C64", "[2]").tensor("t").toString());
        for (String[] wrong : new String[][] {
            {named, "F64", "[2,1]"}, {named, "I64", "[1,2]"}, {named, "F16", "[4,2]"}, {named, "C64", "[2]"},
            {"\"[\\\"u\\\"]\"", "F64", "[2]"}, {"\"t\"", "F64", "[2]"}, {"\"[null]\"", "F64", "[2]"},
            {"\"null\"", "F64", "[2]"}, {"[\"t\"]", "F64", "[2]"}}) {
            assertThrows(MalformedAnswerException.class, () -> file(wrong[0], wrong[1], wrong[2]), wrong[0] + wrong[1]);
        }
    }

    private static Safetensors file(String complex, String dtype, String shape) {
        String header = "{\"__metadata__\":{\"complex\":" + complex + "},\"t\":{\"dtype\":\"" + dtype + "\",\"shape\":"
            + shape + ",\"data_offsets\":[0,16]}}";
        ByteBuffer file = ByteBuffer.allocate(8 + header.length() + 16).order(ByteOrder.LITTLE_ENDIAN);
        file.putLong(header.length()).put(header.getBytes(StandardCharsets.US_ASCII));
        return Safetensors.read(file.rewind());
    }

    @Test
    void shapesThatDoNotFitAreRefused() {
        assertThrows(InputException.class, () -> Tensor.of(new double[2], 3));
        assertThrows(InputException.class, () -> Tensor.of(new double[2], -1, -2));
        assertThrows(InputException.class, () -> Tensor.of(new double[0], new long[65]));
        assertThrows(InputException.class, () -> Tensor.of(new double[0], 1L << 62, 4));
        assertEquals(0, Tensor.of(new double[0], 1L << 48, 0).size());
        assertThrows(InputException.class, () -> Tensor.of(new double[0], 1L << 62, 0));
        assertThrows(InputException.class, () -> Tensor.of(new double[0], 0, 1L << 62, 1L << 62));
        assertThrows(InputException.class, () -> Tensor.of(new double[0], 1L << 50, 0));
        assertThrows(
            MalformedAnswerException.class,
            () -> Tensor.fromJson("{\"dtype\":\"float64\",\"shape\":[4611686018427387904,0],\"data\":[]}"));
    }

    @Test
    void aShapeIsTheTensorsOwn() {
        long[] shape = {2};
        Tensor tensor = Tensor.of(new double[2], shape);
        shape[0] = 3;
        tensor.shape()[0] = 4;
        assertArrayEquals(new long[] {2}, tensor.shape());
    }

    @Test
    void onlyOneElementIsAnItem() {
        assertEquals(2.5, Tensor.scalar(2.5).item());
        assertThrows(InputException.class, Tensor.vector(1, 2)::item);
    }

    @Test
    void printingShowsNoElements() {
        assertEquals("float64[2]", Tensor.vector(1234, 5678).toString());
    }

    @Test
    void jsonIsReadAsItIsWritten() {
        Tensor tensor = Tensor.of(new double[] {-0.0, 1e300}, 1, 2);
        for (Form form : List.of(Form.JSON, Form.BASE64)) {
            assertEquals(tensor.bytes(), Tensor.fromJson(tensor.toJson(form)).bytes());
        }
    }
}
