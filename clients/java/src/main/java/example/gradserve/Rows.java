package example.gradserve;

/**
 * Rows of a resident tensor, which calls accept in place of a tensor.
 *
 * @param name the name of the tensor
 * @param start the first row, along the leading axis
 * @param stop the end of the rows, exclusive
 */
public record Rows(String name, long start, long stop) implements Value {}
