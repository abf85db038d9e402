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
 * A problem report of the server. New codes may be added at any time. Members that the report lacks, for example in an
 * error page of a proxy, are empty.
 *
 * @param status the HTTP status
 * @param code the code, for programs
 * @param detail the message, for people
 * @param type the address of the code's documentation page
 * @param title the heading of that page
 * @param requestId the id of the request in the server's log
 * @param node the id of the node with the error; if the error is in a function, this node runs the function
 * @param function the index of the function with the error
 * @param functionNode the id of the node in the function
 * @param operand the position of the operand with the error
 * @param expected the expected value
 * @param got the value that the server got
 * @param pointer a JSON pointer into the request
 * @param errors all errors, if the server found several
 * @param retryAfter the time after which the server accepts a retry
 * @param extra the members that this client does not know
 */
public record Problem(
    int status, String code, String detail, String type, String title, String requestId, OptionalInt node,
    OptionalInt function, OptionalInt functionNode, OptionalInt operand, String expected, String got, String pointer,
    List<Problem> errors, Optional<Duration> retryAfter, ObjectNode extra) {

    /** Creates a report that has only a status. */
    static Problem of(int status, Optional<Duration> retryAfter) {
        return read(JsonNodeFactory.instance.objectNode(), status, retryAfter);
    }

    /** Reads a report. A member of another type counts as unknown. */
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
