/** The part of a large graph around one node. */

import type { WireNode } from "./wire.js";

/** The most nodes drawn at once. */
export const MOST_DRAWN = 300;
/** The number of nodes drawn around the chosen one in a larger graph. */
const AROUND = 60;

/** The nodes to draw: all, or those that are the fewest edges away from the chosen one. */
export function drawnNodes(nodes: readonly WireNode[], chosen: number): ReadonlySet<number> {
  return nodes.length <= MOST_DRAWN ? new Set(nodes.keys()) : around(nodes, chosen, AROUND);
}

/** At most this many nodes around one, the nearest first. */
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

/** The users of each node. */
export function usersOf(nodes: readonly WireNode[]): ReadonlyMap<number, readonly number[]> {
  const users = new Map<number, number[]>();
  for (const [id, { operands }] of nodes.entries()) {
    for (const operand of operands) users.set(operand, [...(users.get(operand) ?? []), id]);
  }
  return users;
}
