/** GET /api/logs. */
import type { ServerRoute } from '@hapi/hapi';
import { Boom } from 'mountkeeper';
import type { LogFile } from './log-file.ts';
import { parseLogQuery } from './log-query.ts';
import type { LogQuery } from './log-query.ts';

function queryOf(query: Readonly<Record<string, unknown>>): LogQuery {
  try {
    return parseLogQuery(query);
  } catch (error) {
    throw Boom.badRequest((error as Error).message);
  }
}

export function routes(file: LogFile): ServerRoute[] {
  return [
    {
      method: 'GET',
      path: '/api/logs',
      handler: async (request, h) => {
        const page = await file.read(queryOf(request.query as Record<string, unknown>));
        return h.response({ total_lines: page.totalLines, entries: page.entries });
      },
    },
  ];
}
