/** Every hook by its kind. Apart from what runs them, which the process of a stranger's plugin has no use for. */
import type { Hooks } from '../../contract/hooks.ts';

export type HookKind = 'veto' | 'observe' | 'resolve' | 'collect';
export type VetoHook = Extract<keyof Hooks, `before${string}`>;
export type ObserveHook = Extract<keyof Hooks, 'notification' | `after${string}` | `${string}Changed`>;
export type ResolveHook = Extract<keyof Hooks, `resolve${string}`>;
export type CollectHook = Extract<keyof Hooks, `collect${string}`>;

/** Every hook there is, with its kind. */
export const hookKinds: Readonly<Record<keyof Hooks, HookKind>> = {
  beforeMount: 'veto',
  afterMount: 'observe',
  afterUnmount: 'observe',
  shareHealthChanged: 'observe',
  beforeReload: 'veto',
  afterReload: 'observe',
  afterRequest: 'observe',
  notification: 'observe',
  afterCycle: 'observe',
  resolveBandwidth: 'resolve',
  collectShareLimits: 'collect',
  collectShareTroubles: 'collect',
  collectNotices: 'collect',
  collectChecks: 'collect',
};
