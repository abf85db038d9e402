package example.gradserve;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Predicate;

/**
 * A report of the server's. Codes are an open list. What did not come, as with a proxy's page, is empty.
 *
 * @param status that of HTTP
 * @param code a word for programs
 * @param detail a sentence for people
 * @param type leads to the page of the code
 * @param title the heading of that page
 * @param requestId under which the server's log has it
 * @param node the node that it is about: of the graph, also where it is about something inside of a function
 * @param function the index of the function that it is about
 * @param functionNode the id of the node in the function
 * @param operand the place of the operand that it is about
 * @param expected what was expected there
 * @param got what came
 * @param pointer a JSON pointer into the request
 * @param errors all that was found wrong, where that was more than one thing
 * @param retryAfter for how long the server wants to be left alone
 * @param extra the members that this client does not know
 */
public record Problem(
    int status, String code, String detail, String type, String title, String requestId, OptionalInt node,
    OptionalInt function, OptionalInt functionNode, OptionalInt operand, String expected, String got, String pointer,
    List<Problem> errors, Optional<Duration> retryAfter, ObjectNode extra) {

    /** A report that says nothing but its status. */
    static Problem of(int status, Optional<Duration> retryAfter) {
        return read(JsonNodeFactory.instance.objectNode(), status, retryAfter);
    }

    /** What a report says; members that are not of their type are as if not known. */
    static Problem read(ObjectNode report, int status, Optional<Duration> retryAfter) {
        ObjectNode left = report.deepCopy();
        left.remove("status");
        return new Problem(
            status, text(left, "code"), text(left, "detail"), text(left, "type"), text(left, "title"),
            text(left, "request_id"), whole(left, "node"), whole(left, "function"), whole(left, "function_node"),
            whole(left, "operand"), text(left, "expected"), text(left, "got"), text(left, "pointer"),
            errors(left, status), retryAfter, left);
    }

    private static JsonNode taken(ObjectNode left, String name, Predicate<JsonNode> fits) {
        return left.has(name) && fits.test(left.get(name)) ? left.remove(name) : null;
    }

    private static String text(ObjectNode left, String name) {
        JsonNode stated = taken(left, name, JsonNode::isTextual);
        return stated == null ? "" : stated.textValue();
    }

    private static OptionalInt whole(ObjectNode left, String name) {
        JsonNode stated = taken(left, name, JsonNode::isInt);
        return stated == null ? OptionalInt.empty() : OptionalInt.of(stated.intValue());
    }

    private static List<Problem> errors(ObjectNode left, int status) {
        JsonNode stated = taken(left, "errors", JsonNode::isArray);
        List<Problem> errors = new ArrayList<>();
        if (stated != null) {
            for (JsonNode each : stated) {
                if (each instanceof ObjectNode report) {
                    errors.add(read(report, report.path("status").asInt(status), Optional.empty()));
                }
            }
        }
        return List.copyOf(errors);
    }
}
