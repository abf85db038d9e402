package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * A version of a tensor that the server keeps, which may stand wherever a call takes a tensor.
 *
 * <p>A call reads the version that is there when it comes: the etag says which one this was, for conditions. What the
 * server did not say is empty: type and bytes are known of what is put and listed, not of what is stored.
 *
 * @param name under which it is kept
 * @param etag of this version; empty where it is not known
 * @param type its dtype, by its word, and shape
 * @param byteCount how many bytes its elements have
 * @param durable whether it was on disk before the answer
 * @param writtenWithinMs how soon it will be, where it was not
 */
public record Resident(
    String name, String etag, Optional<TensorType> type, OptionalLong byteCount, Optional<Boolean> durable,
    OptionalLong writtenWithinMs) implements Value {

    /**
     * The handle of a tensor that is known to be there, in whichever version.
     *
     * @param name under which it is kept
     */
    public Resident(String name) {
        this(name, "", Optional.empty(), OptionalLong.empty(), Optional.empty(), OptionalLong.empty());
    }

    /**
     * Part of it, which may stand where it may.
     *
     * @param start the first row, along the leading axis
     * @param stop the row behind the last one
     * @return what lies between
     */
    public Rows rows(long start, long stop) {
        return new Rows(name, start, stop);
    }

    /** The handle of a version whose tensor is known. */
    static Resident of(String name, String etag, Tensor tensor) {
        return new Resident(
            name, etag, Optional.of(new TensorType(tensor.dtype(), tensor.shape())),
            OptionalLong.of(tensor.byteCount()), Optional.empty(), OptionalLong.empty());
    }

    static Resident read(ObjectNode stated) {
        return new Resident(
            Json.text(stated, "tensor_id"), Json.text(stated, "etag"),
            Json.has(stated, "dtype")
                ? Optional.of(new TensorType(Json.text(stated, "dtype"), Json.wholes(stated, "shape")))
                : Optional.empty(),
            number(stated, "bytes"),
            Json.has(stated, "durable") ? Optional.of(Json.truth(stated, "durable")) : Optional.empty(),
            number(stated, "written_within_ms"));
    }

    private static OptionalLong number(ObjectNode stated, String name) {
        return Json.has(stated, name) ? OptionalLong.of(Json.longWhole(stated, name)) : OptionalLong.empty();
    }
}
