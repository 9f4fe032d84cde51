/** `mountkeeper webhook test|log|resend ID`. */
import type { CliCommand, CliContext } from 'mountkeeper';
import type { DeliveryView, WebhookAnswer } from './routes.ts';

const USAGE = 'test | log | resend ID';

async function tell(cli: CliContext, path: string): Promise<number> {
  const { body } = await cli.request('POST', path);
  const answer = JSON.parse(body) as Partial<WebhookAnswer>;
  const message = answer.message ?? 'the answer of the daemon cannot be understood';
  if (cli.json) cli.print(body);
  else if (answer.ok === true) cli.print(message);
  else cli.printError(message);
  return answer.ok === true ? 0 : 1;
}

async function log(cli: CliContext): Promise<number> {
  const { status, body } = await cli.request('GET', '/api/webhooks/deliveries');
  if (status !== 200) {
    cli.printError(`the daemon answered with status ${status}`);
    return 1;
  }
  if (cli.json) {
    cli.print(body);
    return 0;
  }
  const { deliveries } = JSON.parse(body) as { deliveries: readonly DeliveryView[] };
  if (deliveries.length === 0) {
    cli.print('No notifications so far. `mountkeeper webhook test` sends one.');
    return 0;
  }
  cli.table([
    ['id', 'created', 'event', 'state', 'tries', 'last answer'],
    ...deliveries.map((one) => [
      one.id,
      one.created_at,
      one.type,
      one.state,
      String(one.tries),
      lastAnswer(one),
    ]),
  ]);
  return 0;
}

function lastAnswer({ attempts, next_at: next }: DeliveryView): string {
  const last = attempts.at(-1);
  if (!last) return '';
  return [
    last.problem ?? `${last.status ?? ''} in ${last.ms} ms`,
    ...(next === null ? [] : [`next at ${next}`]),
  ].join('; ');
}

async function run(cli: CliContext): Promise<number> {
  const [verb, id, ...more] = cli.args;
  if (verb === 'test' && id === undefined) return tell(cli, '/api/webhooks/test');
  if (verb === 'log' && id === undefined) return log(cli);
  if (verb === 'resend' && id !== undefined && more.length === 0)
    return tell(cli, `/api/webhooks/deliveries/${encodeURIComponent(id)}/resend`);
  cli.printError(`usage: mountkeeper webhook ${USAGE}`);
  return 64;
}

export const webhookCommand: CliCommand = {
  name: 'webhook',
  usage: USAGE,
  summary: 'Send a test notification, show what became of notifications, send one again.',
  run,
};
