import { pathToFileURL } from 'node:url';
import type { CacheAccess, CacheView } from 'mountkeeper';
import type { Neighbour } from './manners.ts';

export interface ViewModule {
  openCacheView(parameters: CacheAccess['parameters']): CacheView;
}

export async function loadViews(module: string): Promise<ViewModule> {
  return (await import(pathToFileURL(module).href)) as ViewModule;
}

/** Views into the mounts of other shares, each opened once; what has ended meanwhile is left out. */
export class Neighbours {
  #views = new Map<string, Neighbour>();

  list(): readonly Neighbour[] {
    return [...this.#views.values()];
  }

  async set(beside: readonly CacheAccess[]): Promise<void> {
    const former = this.#views;
    const opened = await Promise.all(beside.map(async (access) => {
      const key = JSON.stringify(access);
      const view = former.get(key) ?? (await open(access));
      return view && ([key, view] as const);
    }));
    this.#views = new Map(opened.filter((one) => one !== undefined));
  }
}

async function open({ module, parameters }: CacheAccess): Promise<Neighbour | undefined> {
  try {
    return (await loadViews(module)).openCacheView(parameters);
  } catch {
    return undefined;
  }
}
