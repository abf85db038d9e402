package example.gradserve;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Files in the <a href="https://github.com/huggingface/safetensors#format">safetensors format</a>: a JSON header,
 * followed by the bytes of the tensors, which are read without a copy. A complex tensor is stored as its real and
 * imaginary parts along a last axis of 2. {@code __metadata__.complex} lists these tensors.
 *
 * @param tensors the tensors by name
 * @param metadata the metadata of the header, without the names of complex tensors
 */
public record Safetensors(Map<String, Tensor> tensors, Map<String, String> metadata) {
    private static final String METADATA = "__metadata__";
    private static final String COMPLEX = "complex";
    private static final int LENGTH_SIZE = 8;
    /** The maximum size of a header: the limit of the reference implementation. */
    private static final long MOST_OF_HEADER = 100_000_000;

    /** The location of a tensor in the file. */
    private record Entry(String name, DType dtype, long[] shape, long start, long end) {
        /** Returns the same location, with the last axis of parts as complex numbers. */
        Entry joined() {
            int last = shape.length - 1;
            if (dtype.kind != DType.Kind.FLOAT || dtype == DType.FLOAT16 || last < 0 || shape[last] != 2) {
                throw new InputException(
                    "'" + name + "' is listed as complex, but is not F32 or F64 with a last axis of 2");
            }
            return new Entry(name, dtype.ofParts(), Arrays.copyOf(shape, last), start, end);
        }
    }

    /**
     * Encodes a file.
     *
     * @return its pieces: the header, and the bytes of the tensors, which are not copied
     */
    public List<ByteBuffer> pieces() {
        ObjectNode entries = Json.object();
        ArrayNode complex = Json.array();
        // Tensors with wide elements come first, so that all are aligned.
        List<String> names = new ArrayList<>(tensors.keySet());
        names.sort(Comparator.<String>comparingInt(name -> -tensors.get(name).dtype().size())
            .thenComparing(Comparator.naturalOrder()));
        List<ByteBuffer> pieces = new ArrayList<>();
        long end = 0;
        for (String name : names) {
            Tensor tensor = tensors.get(name);
            ObjectNode entry = entries.putObject(name).put("dtype", tensor.dtype().parts().spelling);
            ArrayNode shape = Json.array(tensor.shape());
            if (tensor.dtype().kind == DType.Kind.COMPLEX) {
                complex.add(name);
                shape.add(2);
            }
            entry.set("shape", shape);
            entry.set("data_offsets", Json.array(end, end += tensor.byteCount()));
            pieces.add(tensor.bytes());
        }
        Map<String, String> texts = new LinkedHashMap<>(metadata);
        if (!complex.isEmpty()) {
            texts.put(COMPLEX, complex.toString());
        }
        ObjectNode header = Json.object();
        if (!texts.isEmpty()) {
            header.set(METADATA, Json.plain(texts));
        }
        pieces.add(0, framed(Json.bytes(header.setAll(entries))));
        return pieces;
    }

    /** Returns a header preceded by its length, padded so that the data starts at a multiple of 8 bytes. */
    private static ByteBuffer framed(byte[] header) {
        int padding = -header.length & LENGTH_SIZE - 1;
        ByteBuffer framed = ByteBuffer.allocate(LENGTH_SIZE + header.length + padding).order(ByteOrder.LITTLE_ENDIAN);
        byte[] spaces = " ".repeat(padding).getBytes(StandardCharsets.US_ASCII);
        return framed.putLong(header.length + padding).put(header).put(spaces).flip();
    }

    /**
     * Decodes a file without copying it.
     *
     * @param file the bytes of the file, between position and limit
     * @return its tensors, which share the memory of the file, and its metadata
     * @throws MalformedAnswerException if the text is invalid
     */
    public static Safetensors read(ByteBuffer file) {
        return MalformedAnswerException.unless(() -> decoded(file));
    }

    /**
     * Returns the tensor with a name.
     *
     * @param name the name in the file
     * @return its tensor
     * @throws MalformedAnswerException if the file has no such tensor
     */
    public Tensor tensor(String name) {
        if (!tensors.containsKey(name)) {
            throw new MalformedAnswerException("the safetensors file has no tensor named '" + name + "'");
        }
        return tensors.get(name);
    }

    static Safetensors decoded(ByteBuffer file) {
        ByteBuffer rest = file.slice().order(ByteOrder.LITTLE_ENDIAN);
        ObjectNode header = header(rest);
        ByteBuffer data = rest.slice();
        Map<String, String> metadata = metadata(header);
        Set<String> complex = complexNames(metadata.remove(COMPLEX), header);
        List<Entry> entries = new ArrayList<>();
        header.fieldNames().forEachRemaining(name -> {
            Entry entry = entry(name, Json.member(header, name));
            entries.add(complex.contains(name) ? entry.joined() : entry);
        });
        checkThatTheyFill(entries, data.limit());
        Map<String, Tensor> tensors = new LinkedHashMap<>();
        for (Entry entry : entries) {
            ByteBuffer elements = data.slice((int) entry.start, (int) (entry.end - entry.start));
            tensors.put(entry.name, Tensor.wrap(entry.dtype, elements, entry.shape));
        }
        return new Safetensors(tensors, metadata);
    }

    private static ObjectNode header(ByteBuffer file) {
        long length = file.remaining() < LENGTH_SIZE ? Long.MAX_VALUE : file.getLong();
        if (length > file.remaining() || length < 0) {
            throw new InputException("the safetensors file ends before the end of its header");
        }
        if (length > MOST_OF_HEADER) {
            throw new InputException("the safetensors header has " + length + " bytes; the limit is " + MOST_OF_HEADER);
        }
        byte[] header = new byte[(int) length];
        file.get(header);
        return Json.objectOfDistinct(header);
    }

    /** Removes the metadata from a header and returns it. */
    private static Map<String, String> metadata(ObjectNode header) {
        Map<String, String> metadata = new LinkedHashMap<>();
        if (header.has(METADATA)) {
            ObjectNode stated = Json.member(header, METADATA);
            stated.fieldNames().forEachRemaining(name -> metadata.put(name, Json.text(stated, name)));
            header.remove(METADATA);
        }
        return metadata;
    }

    /** Returns the names of the complex tensors. */
    private static Set<String> complexNames(String text, ObjectNode header) {
        Set<String> names = new HashSet<>();
        if (text != null) {
            Json.list(text).forEach(name -> {
                if (!name.isTextual() || !header.has(name.textValue())) {
                    throw new InputException(METADATA + "." + COMPLEX + " of the safetensors file lists " + name
                        + ", which is not the name of a tensor in the file");
                }
                names.add(name.textValue());
            });
        }
        return names;
    }

    private static Entry entry(String name, ObjectNode stated) {
        DType dtype = DType.spelled(Json.text(stated, "dtype"));
        long[] offsets = Json.wholes(stated, "data_offsets");
        if (offsets.length != 2 || offsets[0] < 0 || offsets[0] > offsets[1]) {
            throw new InputException("the data_offsets of '" + name + "' must be [start, end] with 0 <= start <= end");
        }
        return new Entry(name, dtype, Json.wholes(stated, "shape"), offsets[0], offsets[1]);
    }

    /** Checks that the tensors cover the data without gaps or overlaps. */
    private static void checkThatTheyFill(List<Entry> entries, long length) {
        entries.sort(Comparator.comparingLong(Entry::start).thenComparingLong(Entry::end));
        long end = 0;
        for (Entry entry : entries) {
            if (entry.start != end) {
                throw new InputException("the tensors of the safetensors file overlap or leave gaps");
            }
            end = entry.end;
        }
        if (end != length) {
            throw new InputException("the safetensors data has " + length + " bytes, but its tensors have " + end);
        }
    }
}
