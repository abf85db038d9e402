// Register a graph, ask for its gradients, read a refusal: by what OpenAPI Generator made for C++.

#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "CppRestOpenAPIClient/ApiClient.h"
#include "CppRestOpenAPIClient/ApiConfiguration.h"
#include "CppRestOpenAPIClient/ApiException.h"
#include "CppRestOpenAPIClient/api/ComputeApi.h"
#include "CppRestOpenAPIClient/api/GraphsApi.h"

using namespace org::openapitools::client;

std::shared_ptr<model::GraphNode> node(const std::string& op, const std::vector<int64_t>& operands) {
  auto made = std::make_shared<model::GraphNode>();
  made->setOp(op);
  made->setOperands(operands);
  return made;
}

std::shared_ptr<model::GraphNode> node(
    const std::string& op, const std::vector<int64_t>& operands, const std::shared_ptr<model::Attrs>& attrs) {
  auto made = node(op, operands);
  made->setAttrs(attrs);
  return made;
}

std::shared_ptr<model::Graph> graph_of(const std::vector<std::shared_ptr<model::GraphNode>>& nodes) {
  auto made = std::make_shared<model::Graph>();
  made->setNodes(nodes);
  return made;
}

/// Four steps of a decay, as a function that a scan runs.
std::shared_ptr<model::Graph> decay() {
  auto half = std::make_shared<model::Attrs>();
  half->setScalar(-0.5);
  auto steps = std::make_shared<model::Attrs>();
  steps->setBody(0);
  steps->setCarries(1);
  steps->setLength(4);
  auto stack = std::make_shared<model::Attrs>();
  stack->setIndex(1);
  auto euler = std::make_shared<model::GraphFunction>();
  euler->setNodes({node("input", {}), node("input", {}), node("mul", {0, 1}), node("mul_scalar", {2}, half),
                   node("add", {1, 3})});
  euler->setOutputs({4, 4});
  auto made = graph_of({node("parameter", {}), node("input", {}), node("scan", {0, 1}, steps),
                        node("get_output", {2}, stack), node("sum", {3})});
  made->setOpset(2);
  made->setFunctions({euler});
  return made;
}

std::shared_ptr<model::Feed> feed(int64_t id, const std::vector<int64_t>& shape, const std::vector<double>& data) {
  auto tensor = std::make_shared<model::Tensor>();
  tensor->setDtype("float64");
  tensor->setShape(shape);
  tensor->setData(data);
  auto made = std::make_shared<model::Feed>();
  made->setNode(id);
  made->setTensor(tensor);
  return made;
}

int main(int, char* arguments[]) {
  auto configuration = std::make_shared<api::ApiConfiguration>();
  configuration->setBaseUrl(arguments[1]);
  auto client = std::make_shared<api::ApiClient>(configuration);
  api::GraphsApi graphs(client);
  api::ComputeApi compute(client);

  auto registration = std::make_shared<model::RegisterGraphRequest>();
  registration->setGraph(graph_of({node("input", {}), node("parameter", {}), node("input", {}), node("matmul", {0, 1}),
                                   node("sub", {3, 2}), node("square", {4}), node("mean", {5})}));
  auto registered = graphs.registerGraph(registration, boost::none, boost::none).get();
  auto request = std::make_shared<model::RegisteredGradientsRequest>();
  request->setFeeds({feed(0, {2, 2}, {1, 2, 3, 4}), feed(1, {2}, {1, 1}), feed(2, {2}, {2, 8})});
  auto answer = compute.gradientsOfGraph(registered->getGraphId(), request, boost::none, boost::none).get();
  auto gradient = answer->getGradients()[0]->getTensor()->getData();
  std::cout << "gradient " << gradient[0] << ' ' << gradient[1] << '\n';

  // The classes omit what is unset, so the nulls are set in their JSON.
  auto plain = std::make_shared<model::GradientsRequest>();
  plain->setGraph(registration->getGraph());
  plain->setFeeds(request->getFeeds());
  auto nulls = plain->toJson();
  for (auto name : {"of", "wrt"}) nulls[name] = web::json::value::null();
  for (auto name : {"attrs", "name"}) nulls["graph"]["nodes"][6][name] = web::json::value::null();
  nulls["feeds"][2]["tensor"]["data_b64"] = web::json::value::null();
  web::http::client::http_client raw(arguments[1]);
  model::GradientsAnswer same;
  same.fromJson(raw.request(web::http::methods::POST, "/v1/gradients", nulls).get().extract_json().get());
  gradient = same.getGradients()[0]->getTensor()->getData();
  std::cout << "nulls " << gradient[0] << ' ' << gradient[1] << '\n';

  auto looped = std::make_shared<model::GradientsRequest>();
  looped->setGraph(decay());
  looped->setFeeds({feed(0, {}, {1}), feed(1, {}, {16})});
  auto loop = compute.gradients(looped, boost::none, boost::none).get();
  std::cout << "functions " << loop->getValues()[0]->getTensor()->getData()[0] << ' '
            << loop->getGradients()[0]->getTensor()->getData()[0] << '\n';

  auto wrong = std::make_shared<model::GradientsRequest>();
  wrong->setGraph(graph_of({node("input", {}), node("matmul", {0, 7})}));
  try {
    compute.gradients(wrong, boost::none, boost::none).get();
  } catch (const api::ApiException& refused) {
    std::stringstream content;
    content << refused.getContent()->rdbuf();
    model::Problem problem;
    problem.fromJson(web::json::value::parse(content.str()));
    std::cout << "refused " << problem.getCode() << ' ' << problem.getNode() << '\n';
  }
}
