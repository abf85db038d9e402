package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * A handle of one version of a resident tensor. Pass it to calls in place of a tensor.
 *
 * <p>A call reads the version that is stored when it runs. The etag identifies the version of this handle, for
 * conditions. Fields that the server did not report are empty: type and size are known for tensors that were put or
 * listed, not for tensors that a call stored.
 *
 * @param name the name
 * @param etag the identifier of this version; empty if it is unknown
 * @param type its dtype (by name) and shape
 * @param byteCount the size of its elements in bytes
 * @param durable whether it was on disk before the response
 * @param writtenWithinMs the time in milliseconds within which it will be on disk, if it was not
 */
public record Resident(
    String name, String etag, Optional<TensorType> type, OptionalLong byteCount, Optional<Boolean> durable,
    OptionalLong writtenWithinMs) implements Value {

    /**
     * Creates a handle of the current version of a tensor.
     *
     * @param name the name
     */
    public Resident(String name) {
        this(name, "", Optional.empty(), OptionalLong.empty(), Optional.empty(), OptionalLong.empty());
    }

    /**
     * Returns rows of the leading axis, which calls accept in place of a tensor.
     *
     * @param start the first row, along the leading axis
     * @param stop the end of the rows, exclusive
     * @return the rows
     */
    public Rows rows(long start, long stop) {
        return new Rows(name, start, stop);
    }

    /** Returns a handle of the version of a given tensor. */
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
