/** The part of a large graph around one node. */

import type { WireNode } from "./wire.js";

/** So many nodes are drawn at once. */
export const MOST_DRAWN = 300;
/** And so many around a chosen one, where there are more. */
const AROUND = 60;

/** The nodes that are drawn: all, or those that are next to the chosen one, by the edges between. */
export function drawnNodes(nodes: readonly WireNode[], chosen: number): ReadonlySet<number> {
  return nodes.length <= MOST_DRAWN ? new Set(nodes.keys()) : around(nodes, chosen, AROUND);
}

/** So many nodes around one, the nearest first. */
export function around(nodes: readonly WireNode[], chosen: number, most: number): ReadonlySet<number> {
  const users = usersOf(nodes);
  const found = new Set([chosen]);
  for (const id of found) {
    for (const next of [...(nodes[id]?.operands ?? []), ...(users.get(id) ?? [])]) {
      if (found.size >= most) return found;
      if (next >= 0) found.add(next);
    }
  }
  return found;
}

/** For each node, those that read it. */
export function usersOf(nodes: readonly WireNode[]): ReadonlyMap<number, readonly number[]> {
  const users = new Map<number, number[]>();
  for (const [id, { operands }] of nodes.entries()) {
    for (const operand of operands) users.set(operand, [...(users.get(operand) ?? []), id]);
  }
  return users;
}
