package example.gradserve;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Predicate;

/**
 * Results by node, in the order of the request.
 *
 * @param <T> the type of a result
 */
public final class Results<T> implements Iterable<Results.Result<T>> {
    /**
     * The result for a node.
     *
     * @param node a node of the graph that was sent
     * @param value the result
     * @param <T> the type of the result
     */
    public record Result<T>(Node node, T value) {}

    private final List<Result<T>> results;

    Results(List<Result<T>> results) {
        this.results = List.copyOf(results);
    }

    /**
     * Returns the number of results.
     *
     * @return the number of results
     */
    public int size() {
        return results.size();
    }

    /**
     * Returns the result at a position.
     *
     * @param place a position in the order of the request, from 0
     * @return its value
     * @throws IndexOutOfBoundsException if the position is out of range
     */
    public T get(int place) {
        return results.get(place).value();
    }

    /**
     * Returns the result of a node.
     *
     * @param node a node of the graph that was sent
     * @return its value
     * @throws InputException if there is no such result
     */
    public T get(Node node) {
        return find(each -> each == node, String.valueOf(node));
    }

    /**
     * Returns the result of the node with a name.
     *
     * @param name the name of a node of the graph that was sent
     * @return its value
     * @throws InputException if there is no such result
     */
    public T get(String name) {
        return find(each -> !name.isEmpty() && each.name().equals(name), "'" + name + "'");
    }

    private T find(Predicate<Node> is, String sought) {
        for (Result<T> result : results) {
            if (is.test(result.node())) {
                return result.value();
            }
        }
        throw new InputException("the answer has no result for " + sought);
    }

    @Override
    public Iterator<Result<T>> iterator() {
        return results.iterator();
    }

    /**
     * Returns the results in the order of the request.
     *
     * @return a new list
     */
    public List<T> values() {
        List<T> values = new ArrayList<>();
        forEach(each -> values.add(each.value()));
        return values;
    }

    @Override
    public String toString() {
        return results.toString();
    }
}
