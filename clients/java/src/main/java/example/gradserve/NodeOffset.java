package example.gradserve;

/**
 * The place of a node in a matrix.
 *
 * @param offset the first of its rows and columns
 * @param size the number of its rows and columns, which is the number of its elements
 */
public record NodeOffset(int offset, int size) {}
