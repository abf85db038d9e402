import { Api, type Feed, type Graph, type HttpResponse, type Problem } from './client/api.js';

const api = new Api({ baseUrl: process.argv[2] ?? '' });

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

const registered = await api.v1.registerGraph({ graph });
const answer = await api.v1.gradientsOfGraph(registered.data.graph_id, { feeds });
console.log('gradient', ...(answer.data.gradients[0]?.tensor.data ?? []));

try {
  await api.v1.gradients({ graph: wrong, feeds: [] });
} catch (refused) {
  const { error } = refused as HttpResponse<unknown, Problem>;
  console.log('refused', error.code, error.node);
}
