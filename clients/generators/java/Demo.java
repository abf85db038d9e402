import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.ComputeApi;
import org.openapitools.client.api.GraphsApi;
import org.openapitools.client.model.Attrs;
import org.openapitools.client.model.Feed;
import org.openapitools.client.model.GradientsAnswer;
import org.openapitools.client.model.GradientsRequest;
import org.openapitools.client.model.Graph;
import org.openapitools.client.model.GraphFunction;
import org.openapitools.client.model.GraphNode;
import org.openapitools.client.model.Problem;
import org.openapitools.client.model.RegisterGraphRequest;
import org.openapitools.client.model.RegisteredGradientsRequest;
import org.openapitools.client.model.RegisteredGraph;
import org.openapitools.client.model.Tensor;

/** Registers a graph, asks for its gradients, reads a refusal: by what OpenAPI Generator made for Java. */
public class Demo {
  static GraphNode node(String op, Long... operands) {
    return new GraphNode().op(op).operands(List.of(operands));
  }

  static GraphNode node(String op, Attrs attrs, Long... operands) {
    return node(op, operands).attrs(attrs);
  }

  /** Four steps of a decay, as a function that a scan runs. */
  static Graph decay() {
    GraphFunction euler = new GraphFunction().outputs(List.of(4L, 4L)).nodes(List.of(
        node("input"), node("input"), node("mul", 0L, 1L), node("mul_scalar", new Attrs().scalar(-0.5), 2L),
        node("add", 1L, 3L)));
    return new Graph().opset(2L).functions(List.of(euler)).nodes(List.of(
        node("parameter"), node("input"), node("scan", new Attrs().body(0L).carries(1L).length(4L), 0L, 1L),
        node("get_output", new Attrs().index(1L), 2L), node("sum", 3L)));
  }

  static Feed feed(long node, List<Long> shape, Double... data) {
    return new Feed().node(node).tensor(new Tensor().dtype("float64").shape(shape).data(List.of(data)));
  }

  public static void main(String[] arguments) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(arguments[0]);
    ComputeApi compute = new ComputeApi(client);

    Graph graph = new Graph().nodes(List.of(
        node("input"), node("parameter"), node("input"), node("matmul", 0L, 1L), node("sub", 3L, 2L), node("square", 4L),
        node("mean", 5L)));
    List<Feed> feeds = List.of(
        feed(0, List.of(2L, 2L), 1., 2., 3., 4.), feed(1, List.of(2L), 1., 1.), feed(2, List.of(2L), 2., 8.));
    RegisteredGraph registered =
        new GraphsApi(client).registerGraph(new RegisterGraphRequest().graph(graph), null, null);
    GradientsAnswer answer =
        compute.gradientsOfGraph(registered.getGraphId(), new RegisteredGradientsRequest().feeds(feeds), null, null);
    List<Double> gradient = answer.getGradients().get(0).getTensor().getData();
    System.out.printf("gradient %.0f %.0f%n", gradient.get(0), gradient.get(1));

    // Without this setting, Jackson omits the fields that are not set.
    client.setObjectMapper(client.getObjectMapper().setSerializationInclusion(JsonInclude.Include.ALWAYS));
    GradientsRequest nulls = new GradientsRequest().graph(graph).feeds(feeds);
    GradientsAnswer same = new ComputeApi(client).gradients(nulls, null, null);
    gradient = same.getGradients().get(0).getTensor().getData();
    System.out.printf("nulls %.0f %.0f%n", gradient.get(0), gradient.get(1));

    List<Feed> start = List.of(feed(0, List.of(), 1.), feed(1, List.of(), 16.));
    GradientsAnswer loop = compute.gradients(new GradientsRequest().graph(decay()).feeds(start), null, null);
    System.out.printf("functions %.0f %.0f%n", loop.getValues().get(0).getTensor().getData().get(0),
        loop.getGradients().get(0).getTensor().getData().get(0));

    Graph wrong = new Graph().nodes(List.of(node("input"), node("matmul", 0L, 7L)));
    try {
      compute.gradients(new GradientsRequest().graph(wrong), null, null);
    } catch (ApiException refused) {
      Problem problem = client.getObjectMapper().readValue(refused.getResponseBody(), Problem.class);
      System.out.println("refused " + problem.getCode() + " " + problem.getNode());
    }
  }
}
