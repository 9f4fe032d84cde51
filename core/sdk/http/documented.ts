/**
 * What a route says of itself beside its handler: read by `GET /api/openapi.json`, never by the web server.
 */
import type { RouteOptions } from '@hapi/hapi';
import type { Schema } from 'joi';

export interface RouteDocument {
  /** One line. */
  readonly summary: string;
  /** Headers of a request that count, with what they are for. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, Schema>>;
  /** JSON; left out where no body is read. */
  readonly body?: Schema;
  /** Bodies by status; null where there is none. A text is its media type, such as `text/html`. */
  readonly answers: Readonly<Record<number, Schema | string | null>>;
}

declare module '@hapi/hapi' {
  interface PluginSpecificConfiguration {
    documented?: RouteDocument;
  }
}

/** For the `options` of a route: `{ ...documented({ … }), payload: … }`. */
export function documented(document: RouteDocument): RouteOptions {
  return { description: document.summary, plugins: { documented: document } };
}
