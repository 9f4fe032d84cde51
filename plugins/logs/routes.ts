/** GET /api/logs. */
import { finished } from 'node:stream';
import type { ServerRoute } from '@hapi/hapi';
import { Boom, documented, Joi } from 'mountkeeper';
import type { RouteDocument } from 'mountkeeper';
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

const WHOLE = Joi.number().integer().min(0);
const DOCUMENT: RouteDocument = {
  summary: 'Lines of the log file',
  query: {
    lines: WHOLE.default(200),
    from_line: WHOLE.default(0).description(
      '0: the last lines; else those after it, such as the former `total_lines`.',
    ),
  },
  answers: {
    200: Joi.object({
      total_lines: WHOLE.required(),
      entries: Joi.array().items(Joi.string().allow('')).required(),
    }),
  },
};

/** Most lines that pages ask for; such requests never wait. */
const FEW_LINES = 1_000;
/**
 * Most simultaneous answers with more lines. Each may need about ten times its 16 MiB until its client has
 * read it.
 */
const MOST_ANSWERS = 4;

export function routes(file: LogFile): ServerRoute[] {
  const answers = new Set<object>();
  return [
    {
      method: 'GET',
      path: '/api/logs',
      options: documented(DOCUMENT, { role: 'operator', verb: 'logs' }),
      handler: async (request, h) => {
        const query = queryOf(request.query as Record<string, unknown>);
        if (query.lines > FEW_LINES) {
          if (answers.size >= MOST_ANSWERS)
            throw Boom.serverUnavailable(`the log is being sent to ${MOST_ANSWERS} others; ask again`);
          const { res } = request.raw;
          answers.add(res);
          finished(res, () => answers.delete(res));
        }
        const page = await file.read(query);
        return h.response({ total_lines: page.totalLines, entries: page.entries });
      },
    },
  ];
}
