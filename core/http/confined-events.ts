/**
 * `server.events` of a third party's native hapi plugin: of requests it hears its own alone, it emits the events
 * that it has registered itself, and takes away its own listeners. What would be everybody's is refused.
 */
import type { Request, Server } from '@hapi/hapi';

type AnyFn = (this: unknown, ...args: unknown[]) => unknown;

interface Criteria {
  readonly name: string;
  readonly count?: number;
}

interface Listening {
  readonly name: string;
  readonly listener: AnyFn;
  /** What hapi knows of. */
  readonly heard: AnyFn;
}

export interface OwnEventsOptions {
  readonly owns: (request: Request) => boolean;
  /** Throws the sentence why not. */
  readonly refuse: (what: string) => never;
}

export class OwnEvents {
  readonly #options: OwnEventsOptions;
  readonly #registered = new Set<string>();
  readonly #listening = new Set<Listening>();

  constructor(options: OwnEventsOptions) {
    this.#options = options;
  }

  /** `server.event` */
  register(server: Server, events: unknown): void {
    (server.event as AnyFn).call(server, events);
    for (const event of [events].flat()) this.#registered.add(criteriaOf(event).name);
  }

  /** `server.events`; what is asked of it and is not there is refused by name. */
  of(server: Server): object {
    const chained =
      (act: (...args: never[]) => void) =>
      (...args: never[]) => {
        act(...args);
        return events;
      };
    const on = chained((criteria: unknown, listener: AnyFn, context?: unknown) =>
      this.#listen(server, criteriaOf(criteria), listener, context),
    );
    const removeListener = chained((name: string, listener: AnyFn) => this.#leave(server, name, listener));
    const members: Readonly<Record<string, unknown>> = {
      on,
      addListener: on,
      once: (criteria: unknown, listener?: AnyFn, context?: unknown) =>
        listener
          ? on(...([{ ...criteriaOf(criteria), count: 1 }, listener, context] as never[]))
          : new Promise((resolve) => {
              this.#listen(server, { ...criteriaOf(criteria), count: 1 }, (...args) => resolve(args));
            }),
      removeListener,
      off: removeListener,
      emit: (criteria: unknown, data: unknown) => this.#emit(server, criteriaOf(criteria), data),
    };
    const events: object = new Proxy(Object.freeze(members), {
      get: (target, key) => {
        if (typeof key === 'symbol' || Object.hasOwn(target, key)) return Reflect.get(target, key);
        return this.#options.refuse(`events.${key}()`);
      },
    });
    return events;
  }

  #listen(
    server: Server,
    { count = Infinity, ...criteria }: Criteria,
    listener: AnyFn,
    context?: unknown,
  ): void {
    const { name } = criteria;
    const isOfRequest = name === 'request' || name === 'response';
    let left = count;
    const heard: AnyFn = (first, ...rest) => {
      if (isOfRequest && !this.#options.owns(first as Request)) return;
      left -= 1;
      if (left === 0) this.#forget(server, one);
      listener.call(context, first, ...rest);
    };
    const one = { name, listener, heard };
    (server.events.on as AnyFn).call(server.events, criteria, heard);
    this.#listening.add(one);
  }

  #leave(server: Server, name: string, listener: AnyFn): void {
    for (const one of this.#listening)
      if (one.name === name && one.listener === listener) this.#forget(server, one);
  }

  #forget(server: Server, one: Listening): void {
    this.#listening.delete(one);
    (server.events.removeListener as AnyFn).call(server.events, one.name, one.heard);
  }

  #emit(server: Server, criteria: Criteria, data: unknown): void {
    if (!this.#registered.has(criteria.name)) this.#options.refuse(`events.emit("${criteria.name}")`);
    (server.events.emit as AnyFn).call(server.events, criteria, data);
  }
}

function criteriaOf(given: unknown): Criteria {
  return typeof given === 'string' ? { name: given } : { ...(given as Criteria) };
}
