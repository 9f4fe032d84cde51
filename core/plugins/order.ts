/** Order of activation: providers of a service come before the plugins that require it; otherwise by name. */

/** What ordering needs to know about a plugin. */
export interface ServiceNode {
  readonly name: string;
  readonly requires: readonly string[];
  readonly provides: readonly string[];
}

/**
 * A sorted copy. Plugins that wait for each other in a circle keep their position; they never become
 * active.
 */
export function sortByServices<T extends ServiceNode>(nodes: readonly T[]): T[] {
  const provider = new Map(nodes.flatMap((node) => node.provides.map((service) => [service, node] as const)));
  const sorted: T[] = [];
  const seen = new Set<T>();
  const visit = (node: T): void => {
    if (seen.has(node)) return;
    seen.add(node);
    for (const service of node.requires) {
      const needed = provider.get(service);
      if (needed) visit(needed);
    }
    sorted.push(node);
  };
  for (const node of nodes) visit(node);
  return sorted;
}

/** The plugins of a circle that `start` is part of, in order; empty when there is none. */
export function findCircle(start: ServiceNode, nodes: readonly ServiceNode[]): readonly string[] {
  const provider = new Map(nodes.flatMap((node) => node.provides.map((service) => [service, node] as const)));
  const walk = (node: ServiceNode, path: readonly ServiceNode[]): readonly string[] => {
    for (const service of node.requires) {
      const needed = provider.get(service);
      if (needed === start) return [...path, node].map((each) => each.name);
      if (!needed || path.includes(needed)) continue;
      const circle = walk(needed, [...path, node]);
      if (circle.length > 0) return circle;
    }
    return [];
  };
  return walk(start, []);
}
