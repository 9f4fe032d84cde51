/** `mountkeeper bwlimit` without rates: shows the current limits. */
import { formatRate } from 'mountkeeper';
import type { BandwidthState, CliContext } from 'mountkeeper';

function rate(bytesPerSecond: number): string {
  return bytesPerSecond === 0 ? 'unlimited' : formatRate(bytesPerSecond);
}

export async function showBandwidth(cli: CliContext): Promise<number> {
  const { status, body } = await cli.request('GET', '/api/bwlimit');
  if (status !== 200) {
    cli.printError(`the daemon answered with status ${status}`);
    return 1;
  }
  if (cli.json) {
    cli.print(body);
    return 0;
  }
  const { limit, effective, shares } = JSON.parse(body) as BandwidthState;
  cli.table([
    ['', 'up', 'down'],
    ['limit', rate(limit.up), rate(limit.down)],
    ['holds now', rate(effective.up), rate(effective.down)],
    ...shares.map(({ share, up, down }) => [share, rate(up), rate(down)]),
  ]);
  return 0;
}
