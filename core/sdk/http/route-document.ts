/**
 * Documentation of a route, next to its handler: read by `GET /api/openapi.json`, ignored by the web
 * server.
 */
import type { RouteOptions } from '@hapi/hapi';
import type { Schema } from 'joi';
import type { RouteAccess } from '../../contract/http.ts';

export interface RouteDocument {
  /** One line. */
  readonly summary: string;
  /** Request headers that matter, with what they are for. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, Schema>>;
  /** JSON schema; absent when the route reads no body. */
  readonly body?: Schema;
  /** True: it asks and changes nothing, though it is no GET. */
  readonly isQuestion?: boolean;
  /** Bodies by status code; null for none. A string is a media type, such as `text/html`. */
  readonly answers: Readonly<Record<number, Schema | string | null>>;
}

declare module '@hapi/hapi' {
  interface PluginSpecificConfiguration {
    documented?: () => RouteDocument;
  }
}

/**
 * For the `options` of a route: `{ ...documented({ … }), payload: … }`. Without `access` the route is for
 * administrators alone.
 */
export function documented(document: RouteDocument, access?: RouteAccess): RouteOptions {
  // In a function, since hapi copies everything else several times for each route, Joi schemas included.
  return {
    description: document.summary,
    plugins: { documented: () => document, ...(access && { access }) },
  };
}
