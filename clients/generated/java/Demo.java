import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.ComputeApi;
import org.openapitools.client.api.GraphsApi;
import org.openapitools.client.model.Feed;
import org.openapitools.client.model.GradientsAnswer;
import org.openapitools.client.model.GradientsRequest;
import org.openapitools.client.model.Graph;
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

    Graph wrong = new Graph().nodes(List.of(node("input"), node("matmul", 0L, 7L)));
    try {
      compute.gradients(new GradientsRequest().graph(wrong), null, null);
    } catch (ApiException refused) {
      Problem problem = client.getObjectMapper().readValue(refused.getResponseBody(), Problem.class);
      System.out.println("refused " + problem.getCode() + " " + problem.getNode());
    }
  }
}
