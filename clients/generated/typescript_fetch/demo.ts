import { ComputeApi, Configuration, GraphsApi, ProblemFromJSON, ResponseError, type Feed, type Graph } from './client/index.js';

const configuration = new Configuration({ basePath: process.argv[2] ?? '' });
const compute = new ComputeApi(configuration);

const graph: Graph = {
  nodes: [
    { op: 'input', name: 'x' }, { op: 'parameter', name: 'w' }, { op: 'input', name: 'y' },
    { op: 'matmul', operands: [0, 1] }, { op: 'sub', operands: [3, 2] }, { op: 'square', operands: [4] },
    { op: 'mean', operands: [5] },
  ],
};
const feed = (node: number, shape: number[], data: number[]): Feed => ({ node, tensor: { dtype: 'float64', shape, data } });
const feeds = [feed(0, [2, 2], [1, 2, 3, 4]), feed(1, [2], [1, 1]), feed(2, [2], [2, 8])];
const wrong: Graph = { nodes: [{ op: 'input' }, { op: 'matmul', operands: [0, 7] }] };

const registered = await new GraphsApi(configuration).registerGraph({ registerGraphRequest: { graph } });
const answer = await compute.gradientsOfGraph({ graphId: registered.graphId, registeredGradientsRequest: { feeds } });
console.log('gradient', ...(answer.gradients[0]?.tensor.data ?? []));

try {
  await compute.gradients({ gradientsRequest: { graph: wrong, feeds: [] } });
} catch (refused) {
  if (!(refused instanceof ResponseError)) throw refused;
  const problem = ProblemFromJSON(await refused.response.json());
  console.log('refused', problem.code, problem.node);
}
