import { pathToFileURL } from 'node:url';
import type { CacheAccess, CacheView } from 'mountkeeper';
import type { OtherReader } from './back-pressure.ts';

export interface ViewModule {
  openCacheView(parameters: CacheAccess['parameters']): CacheView;
}

export async function loadViews(module: string): Promise<ViewModule> {
  return (await import(pathToFileURL(module).href)) as ViewModule;
}

/** Views into the mounts of other shares, each opened once; mounts that have ended are left out. */
export class OtherReaders {
  #views = new Map<string, OtherReader>();

  list(): readonly OtherReader[] {
    return [...this.#views.values()];
  }

  async set(beside: readonly CacheAccess[]): Promise<void> {
    const former = this.#views;
    const opened = await Promise.all(
      beside.map(async (access) => {
        const key = JSON.stringify(access);
        const view = former.get(key) ?? (await open(access));
        return view && ([key, view] as const);
      }),
    );
    this.#views = new Map(opened.filter((one) => one !== undefined));
  }
}

async function open({ module, parameters }: CacheAccess): Promise<OtherReader | undefined> {
  try {
    return (await loadViews(module)).openCacheView(parameters);
  } catch {
    // One that cannot be opened gives no cause to wait.
    return undefined;
  }
}
