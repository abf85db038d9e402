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
const decay: Graph = {
  opset: 2,
  functions: [
    {
      name: 'euler',
      outputs: [4, 4],
      nodes: [
        { op: 'input', name: 'k' }, { op: 'input', name: 'y' }, { op: 'mul', operands: [0, 1] },
        { op: 'mul_scalar', operands: [2], attrs: { scalar: -0.5 } }, { op: 'add', operands: [1, 3] },
      ],
    },
  ],
  nodes: [
    { op: 'parameter', name: 'k' }, { op: 'input', name: 'y0' },
    { op: 'scan', operands: [0, 1], attrs: { body: 0, carries: 1, length: 4 } },
    { op: 'get_output', operands: [2], attrs: { index: 1 } }, { op: 'sum', operands: [3] },
  ],
};
const start = [feed(0, [], [1]), feed(1, [], [16])];

const registered = await new GraphsApi(configuration).registerGraph({ registerGraphRequest: { graph } });
const answer = await compute.gradientsOfGraph({ graphId: registered.graphId, registeredGradientsRequest: { feeds } });
console.log('gradient', ...(answer.gradients[0]?.tensor.data ?? []));

// The types have no null, but the server treats it as absent.
const none = null as never;
const nodes = graph.nodes.map((node) => ({ attrs: none, name: none, ...node }));
const nulls = feeds.map(({ node, tensor }) => ({ node, tensor: { ...tensor!, dataB64: none } }));
const same = await compute.gradients({ gradientsRequest: { graph: { nodes }, feeds: nulls, of: none, wrt: none } });
console.log('nulls', ...(same.gradients[0]?.tensor.data ?? []));

const loop = await compute.gradients({ gradientsRequest: { graph: decay, feeds: start } });
console.log('functions', ...(loop.values[0]?.tensor.data ?? []), ...(loop.gradients[0]?.tensor.data ?? []));

try {
  await compute.gradients({ gradientsRequest: { graph: wrong, feeds: [] } });
} catch (refused) {
  if (!(refused instanceof ResponseError)) throw refused;
  const problem = ProblemFromJSON(await refused.response.json());
  console.log('refused', problem.code, problem.node);
}
