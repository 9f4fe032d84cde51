/** Plugins for tests of the host: as small as can be, with a diary of what happened to them. */
import { definePlugin } from 'mountkeeper';
import type { Plugin, PluginContext } from 'mountkeeper';
import type { AnyPlugin } from 'mountkeeper/testing';

export type Diary = string[];

declare module 'mountkeeper' {
  interface Services {
    lamp: { readonly color: string };
    socket: { readonly volts: number };
  }
  interface Commands {
    blink: { args: [times: number]; result: void };
  }
}

export interface Small extends Partial<Omit<Plugin, 'register' | 'name'>> {
  readonly declare?: (ctx: PluginContext<never>) => void;
}

/** A plugin with one effect that writes into the diary when it comes and goes. */
export function small(name: string, diary: Diary, options: Small = {}): AnyPlugin {
  const { declare, ...rest } = options;
  return definePlugin({
    version: '1.0.0',
    apiVersion: 1,
    description: `the plugin ${name}`,
    ...rest,
    name,
    register(ctx) {
      ctx.effect(name, () => {
        diary.push(`+${name}`);
        return () => {
          diary.push(`-${name}`);
        };
      });
      declare?.(ctx as unknown as PluginContext<never>);
    },
  });
}
