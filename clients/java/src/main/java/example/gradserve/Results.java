package example.gradserve;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Predicate;

/**
 * What an answer has for each of some nodes, in the order of the request.
 *
 * @param <T> what it has
 */
public final class Results<T> implements Iterable<Results.Result<T>> {
    /**
     * One of them.
     *
     * @param node of the graph that was sent
     * @param value what the answer has for it
     * @param <T> what that is
     */
    public record Result<T>(Node node, T value) {}

    private final List<Result<T>> results;

    Results(List<Result<T>> results) {
        this.results = List.copyOf(results);
    }

    /**
     * How many there are.
     *
     * @return as many as the request asks for
     */
    public int size() {
        return results.size();
    }

    /**
     * The one of a place.
     *
     * @param place from 0 on, in the order of the request
     * @return its value
     * @throws IndexOutOfBoundsException beyond the last
     */
    public T get(int place) {
        return results.get(place).value();
    }

    /**
     * The one of a node.
     *
     * @param node of the graph that was sent
     * @return its value
     * @throws InputException where the answer has none
     */
    public T get(Node node) {
        return find(each -> each == node, String.valueOf(node));
    }

    /**
     * The one of the node that has a name.
     *
     * @param name of a node of the graph that was sent
     * @return its value
     * @throws InputException where the answer has none
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
     * The values in the order of the request.
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
