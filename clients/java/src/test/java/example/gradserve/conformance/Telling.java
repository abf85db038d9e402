package example.gradserve.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import example.gradserve.Answer;
import example.gradserve.AnswerTooLargeException;
import example.gradserve.AuthenticationException;
import example.gradserve.Blocks;
import example.gradserve.CheckAnswer;
import example.gradserve.ConditionException;
import example.gradserve.DeadlineException;
import example.gradserve.DifferentiateAnswer;
import example.gradserve.ForwardAnswer;
import example.gradserve.GradientsAnswer;
import example.gradserve.GradserveException;
import example.gradserve.GraphException;
import example.gradserve.GraphSummary;
import example.gradserve.HessianAnswer;
import example.gradserve.HessianMatrix;
import example.gradserve.HvpAnswer;
import example.gradserve.InputException;
import example.gradserve.JacobianAnswer;
import example.gradserve.JvpAnswer;
import example.gradserve.Model;
import example.gradserve.ModelValue;
import example.gradserve.Node;
import example.gradserve.NodeOffset;
import example.gradserve.NotFoundException;
import example.gradserve.OverloadException;
import example.gradserve.PlanAnswer;
import example.gradserve.Problem;
import example.gradserve.RateException;
import example.gradserve.Resident;
import example.gradserve.Results;
import example.gradserve.ServerException;
import example.gradserve.StoreFullException;
import example.gradserve.Tensor;
import example.gradserve.TransportException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;

/** Results and exceptions in the form of results. */
final class Telling {
    private Telling() {}

    /** Returns a result by its API names. */
    static ObjectNode returned(Answer answer) {
        ObjectNode made = answer.fields();
        if (answer instanceof ForwardAnswer forward) {
            made.set("values", results(forward.values()));
            putStored(made, forward.stored());
        }
        if (answer instanceof GradientsAnswer gradients) {
            made.set("gradients", results(gradients.gradients()));
            putIds(made, gradients.disconnected());
        }
        if (answer instanceof JvpAnswer jvp) {
            made.set("tangents", results(jvp.tangents()));
        } else if (answer instanceof JacobianAnswer jacobian) {
            made.set("jacobian", blocks(jacobian.jacobian(), "of", "wrt"));
        } else if (answer instanceof HvpAnswer hvp) {
            made.set("hvp", results(hvp.hvp()));
        } else if (answer instanceof HessianAnswer hessian) {
            made.set("hessian", blocks(hessian.hessian(), "row", "column"));
            JsonNode none = JsonNodeFactory.instance.nullNode();
            made.set("matrix", hessian.matrix().<JsonNode>map(Telling::matrix).orElse(none));
        } else if (answer instanceof CheckAnswer check) {
            made.put("passed", check.passed());
        } else if (answer instanceof PlanAnswer plan) {
            made.put("admitted", plan.admitted());
        } else if (answer instanceof DifferentiateAnswer differentiated) {
            putGraph(made, differentiated);
        }
        return made;
    }

    private static void putGraph(ObjectNode made, DifferentiateAnswer answer) {
        ArrayNode gradients = made.putArray("gradients");
        answer.gradients().forEach(each ->
            gradients.addObject().put("node", each.node().id()).put("gradient_node", each.value().id()));
        putIds(made, answer.disconnected());
        made.put("graph", answer.graph().toJson());
    }

    private static void putIds(ObjectNode made, List<Node> disconnected) {
        ArrayNode ids = made.putArray("disconnected");
        disconnected.forEach(node -> ids.add(node.id()));
    }

    /** Looks results up by node, as users do. */
    private static ArrayNode results(Results<Tensor> all) {
        ArrayNode made = JsonNodeFactory.instance.arrayNode();
        all.forEach(each ->
            made.addObject().put("node", each.node().id()).set("tensor", Bits.of(all.get(each.node()))));
        return made;
    }

    private static ArrayNode blocks(Blocks all, String first, String second) {
        ArrayNode made = JsonNodeFactory.instance.arrayNode();
        all.forEach(each -> made.addObject().put(first, each.first().id()).put(second, each.second().id())
            .set("tensor", Bits.of(all.get(each.first(), each.second()))));
        return made;
    }

    private static ObjectNode matrix(HessianMatrix hessian) {
        ObjectNode made = JsonNodeFactory.instance.objectNode();
        ArrayNode offsets = made.putArray("offsets");
        hessian.offsets().forEach(each -> {
            NodeOffset place = hessian.offsets().get(each.node());
            offsets.addObject().put("node", each.node().id()).put("offset", place.offset()).put("size", place.size());
        });
        made.set("tensor", Bits.of(hessian.tensor()));
        return made;
    }

    private static void putStored(ObjectNode made, Results<Resident> stored) {
        if (stored.size() > 0) {
            ArrayNode list = made.putArray("stored");
            stored.forEach(each -> list.add(handle(each.value()).put("node", each.node().id())));
        }
    }

    /** Returns a handle by its API names. */
    static ObjectNode handle(Resident kept) {
        ObjectNode made = JsonNodeFactory.instance.objectNode().put("tensor_id", kept.name()).put("etag", kept.etag());
        kept.type().ifPresent(type -> {
            made.put("dtype", type.dtype());
            Bits.putShape(made, type.shape());
        });
        kept.byteCount().ifPresent(bytes -> made.put("bytes", bytes));
        kept.durable().ifPresent(durable -> made.put("durable", durable));
        kept.writtenWithinMs().ifPresent(within -> made.put("written_within_ms", within));
        return made;
    }

    static ObjectNode summary(GraphSummary kept) {
        ObjectNode made = JsonNodeFactory.instance.objectNode().put("graph_id", kept.id());
        made.put("node_count", kept.nodeCount());
        return kept.description().isEmpty() ? made : made.put("description", kept.description());
    }

    static ObjectNode model(Model kept) {
        ObjectNode made = JsonNodeFactory.instance.objectNode().put("name", kept.name()).put("etag", kept.etag());
        made.put("graph_id", kept.graphId());
        if (!kept.description().isEmpty()) {
            made.put("description", kept.description());
        }
        putValues(made.putArray("inputs"), kept.inputs());
        putValues(made.putArray("outputs"), kept.outputs());
        ArrayNode bound = made.putArray("bound");
        kept.bound().forEach(each -> {
            ObjectNode entry = bound.addObject().put("node", each.node()).put("tensor_id", each.tensorName());
            Bits.putShape(entry.put("dtype", each.type().dtype()), each.type().shape());
        });
        return made;
    }

    private static void putValues(ArrayNode list, List<ModelValue> values) {
        values.forEach(each -> {
            ObjectNode entry = list.addObject().put("name", each.name()).put("node", each.node());
            Bits.putShape(entry.put("dtype", each.type().dtype()), each.type().shape());
        });
    }

    /** Returns an exception in the form of a result. */
    static ObjectNode told(GradserveException failure) {
        StringWriter printed = new StringWriter();
        failure.printStackTrace(new PrintWriter(printed));
        ObjectNode made = failure.problem().map(Telling::report).orElseGet(JsonNodeFactory.instance::objectNode);
        return made.put("type", type(failure)).put("message", printed.toString());
    }

    private static String type(GradserveException failure) {
        Map<Class<? extends GradserveException>, String> types = Map.ofEntries(
            Map.entry(InputException.class, "input"), Map.entry(AnswerTooLargeException.class, "too_large"),
            Map.entry(DeadlineException.class, "deadline"), Map.entry(AuthenticationException.class, "authentication"),
            Map.entry(RateException.class, "rate"), Map.entry(OverloadException.class, "overload"),
            Map.entry(NotFoundException.class, "not_found"), Map.entry(ConditionException.class, "condition"),
            Map.entry(StoreFullException.class, "store_full"), Map.entry(ServerException.class, "server"),
            Map.entry(GraphException.class, "graph"));
        return types.getOrDefault(failure.getClass(), failure instanceof TransportException ? "transport" : "unknown");
    }

    private static ObjectNode report(Problem problem) {
        ObjectNode made = JsonNodeFactory.instance.objectNode().put("status", problem.status());
        Map.of("code", problem.code(), "detail", problem.detail(), "request_id", problem.requestId(),
            "expected", problem.expected(), "got", problem.got(), "pointer", problem.pointer())
            .forEach((name, text) -> {
                if (!text.isEmpty()) {
                    made.put(name, text);
                }
            });
        problem.node().ifPresent(node -> made.put("node", node));
        problem.function().ifPresent(function -> made.put("function", function));
        problem.functionNode().ifPresent(node -> made.put("function_node", node));
        problem.operand().ifPresent(operand -> made.put("operand", operand));
        if (!problem.errors().isEmpty()) {
            ArrayNode errors = made.putArray("errors");
            problem.errors().forEach(each -> errors.add(report(each)));
        }
        if (!problem.extra().isEmpty()) {
            made.put("extra", problem.extra().toString());
        }
        return made;
    }
}
