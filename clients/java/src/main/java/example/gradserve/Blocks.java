package example.gradserve;

import java.util.Iterator;
import java.util.List;
import java.util.function.BiPredicate;

/** What an answer has for pairs of nodes: of an output and what it is differentiated by, or of a row and a column. */
public final class Blocks implements Iterable<Blocks.Block> {
    /**
     * One of them.
     *
     * @param first the output, or the row
     * @param second what it is differentiated by, or the column
     * @param tensor of the shape of the one, then that of the other
     */
    public record Block(Node first, Node second, Tensor tensor) {}

    private final List<Block> blocks;

    Blocks(List<Block> blocks) {
        this.blocks = List.copyOf(blocks);
    }

    /**
     * How many there are.
     *
     * @return one for each pair
     */
    public int size() {
        return blocks.size();
    }

    /**
     * The one of a place.
     *
     * @param place from 0 on, in the order of the answer
     * @return its elements
     * @throws IndexOutOfBoundsException beyond the last
     */
    public Tensor get(int place) {
        return blocks.get(place).tensor();
    }

    /**
     * The one of two nodes.
     *
     * @param first the output, or the row
     * @param second what it is differentiated by, or the column
     * @return its elements
     * @throws InputException where the answer has none
     */
    public Tensor get(Node first, Node second) {
        return find((one, other) -> one == first && other == second, first + " and " + second);
    }

    /**
     * The one of the nodes that have these names.
     *
     * @param first that of the output, or the row
     * @param second that of what it is differentiated by, or the column
     * @return its elements
     * @throws InputException where the answer has none
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
