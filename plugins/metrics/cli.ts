/** `mountkeeper metrics`: prints /metrics, for example for a collector that reads text files. */
import type { CliCommand } from 'mountkeeper';

export const metricsCommand: CliCommand = {
  name: 'metrics',
  usage: '',
  summary: 'Print the figures of /metrics.',
  async run(cli) {
    if (cli.args.length > 0) {
      cli.printError('usage: mountkeeper metrics');
      return 64;
    }
    const { status, body } = await cli.request('GET', '/metrics');
    if (status !== 200) {
      cli.printError('the daemon has no metrics: its plugin "metrics" is switched off');
      return 1;
    }
    cli.print(body.trimEnd());
    return 0;
  },
};
