package example.gradserve;

/**
 * Part of a tensor that the server keeps, which may stand wherever a call takes a tensor.
 *
 * @param name under which the tensor is kept
 * @param start the first row, along the leading axis
 * @param stop the row behind the last one
 */
public record Rows(String name, long start, long stop) implements Value {}
