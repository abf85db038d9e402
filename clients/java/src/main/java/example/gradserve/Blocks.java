package example.gradserve;

import java.util.Iterator;
import java.util.List;
import java.util.function.BiPredicate;

/** Results by pairs of nodes: an output and a node of {@code wrt}, or a row and a column. */
public final class Blocks implements Iterable<Blocks.Block> {
    /**
     * The result for a pair of nodes.
     *
     * @param first the output, or the row
     * @param second the node of {@code wrt}, or the column
     * @param tensor the block: the shape of the first node followed by the shape of the second
     */
    public record Block(Node first, Node second, Tensor tensor) {}

    private final List<Block> blocks;

    Blocks(List<Block> blocks) {
        this.blocks = List.copyOf(blocks);
    }

    /**
     * Returns the number of results.
     *
     * @return one for each pair
     */
    public int size() {
        return blocks.size();
    }

    /**
     * Returns the result at a position.
     *
     * @param place a position in the order of the response, from 0
     * @return its elements
     * @throws IndexOutOfBoundsException if the position is out of range
     */
    public Tensor get(int place) {
        return blocks.get(place).tensor();
    }

    /**
     * Returns the block of two nodes.
     *
     * @param first the output, or the row
     * @param second the node of {@code wrt}, or the column
     * @return its elements
     * @throws InputException if there is no such result
     */
    public Tensor get(Node first, Node second) {
        return find((one, other) -> one == first && other == second, first + " and " + second);
    }

    /**
     * Returns the block of the nodes with these names.
     *
     * @param first the name of the output, or of the row
     * @param second the name of the node of {@code wrt}, or of the column
     * @return its elements
     * @throws InputException if there is no such result
     */
    public Tensor get(String first, String second) {
        boolean named = !first.isEmpty() && !second.isEmpty();
        return find((one, other) -> named && one.name().equals(first) && other.name().equals(second),
            "'" + first + "' and '" + second + "'");
    }

    private Tensor find(BiPredicate<Node, Node> are, String sought) {
        for (Block block : blocks) {
            if (are.test(block.first(), block.second())) {
                return block.tensor();
            }
        }
        throw new InputException("the answer has no block for " + sought);
    }

    @Override
    public Iterator<Block> iterator() {
        return blocks.iterator();
    }

    @Override
    public String toString() {
        return blocks.toString();
    }
}
