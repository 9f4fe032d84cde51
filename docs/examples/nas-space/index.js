import { definePlugin, duration, durationMs, filePath, html, Joi, size, sizeBytes } from 'mountkeeper';
import { askSpace } from './ask.js';

const BAR = 200;

const isSet = ({ host, user, key }) => [host, user, key].every((value) => value !== '');

const texts = {
  en: { free: '{free} of {total} free', none: 'Not known yet', failed: 'It could not be asked: {reason}' },
  zh: { free: '可用 {free}，共 {total}', none: '尚不清楚', failed: '无法询问：{reason}' },
};

export default definePlugin({
  name: 'nas-space',
  version: '1.0.0',
  apiVersion: 1,
  description: 'Asks a NAS over SSH how much space it has left.',
  requires: ['clock'],
  config: {
    schema: Joi.object({
      // Neither may begin with a hyphen, which would be an option of ssh.
      host: Joi.string()
        .pattern(/^[a-z0-9][a-z0-9.:-]*$/i)
        .allow('')
        .default('')
        .description('Name or address of the NAS.'),
      port: Joi.number().port().default(22).description('Port of its SSH server.'),
      user: Joi.string()
        .pattern(/^[a-z0-9_][a-z0-9_.-]*$/i)
        .allow('')
        .default('')
        .description('User on the NAS, with as few rights as it allows.'),
      key: filePath()
        .allow('')
        .default('')
        .meta({ fileOnly: true })
        .description('File with the private key, without a passphrase.'),
      known_hosts: filePath()
        .allow('')
        .default('')
        .meta({ fileOnly: true })
        .description("File with the public key of the NAS; left out, that of the daemon's user."),
      path: Joi.string().default('/').description('Folder on the NAS whose file system is asked for.'),
      interval: duration({ min: '1s' }).default('10m').description('Time between two questions.'),
      least: size().default('50G').description('With less than this, a notice says so.'),
    }).meta({ tier: 'live' }),
  },
  register(ctx) {
    let last;
    const asked = ctx.event({
      name: 'nas-space:asked',
      summary: 'The NAS has said how much space it has.',
      value: Joi.object({ host: Joi.string(), freeBytes: Joi.number(), totalBytes: Joi.number() }),
    });
    ctx.every({
      name: 'ask the NAS',
      // For the first time at once; and nobody before it is known who.
      ms: () => (isSet(ctx.config) ? (last ? durationMs(ctx.config.interval) : 1) : 0),
      run: async (signal) => {
        last = await askSpace(ctx.config, signal).then(
          (space) => ({ space, at: ctx.use('clock').now() }),
          // What was known last stays, beside the reason why it is old.
          (error) => ({ ...last, problem: error.message }),
        );
        if (last.problem !== undefined) ctx.log.warn({ reason: last.problem }, 'the NAS could not be asked');
        else asked({ host: ctx.config.host, ...last.space });
      },
    });

    ctx.tap('collectNotices', () => {
      if (!isSet(ctx.config))
        return [{ level: 'warning', message: 'nas-space asks nobody: host, user and key must be set.' }];
      const { space, problem } = last ?? {};
      const isShort = space && space.freeBytes < sizeBytes(ctx.config.least);
      return [
        ...(isShort
          ? [{ level: 'warning', message: `${ctx.config.host} has less than ${ctx.config.least} left.` }]
          : []),
        ...(problem === undefined
          ? []
          : [
              { level: 'info', message: `${ctx.config.host} does not say how much space it has: ${problem}` },
            ]),
      ];
    });
    const gauge = (name, help, read) =>
      ctx.metric({
        name,
        help,
        labels: ['host'],
        read: () => (last?.space ? [{ value: read(last.space), labels: { host: ctx.config.host } }] : []),
      });
    gauge('mountkeeper_nas_free_bytes', 'Free space on the NAS.', ({ freeBytes }) => freeBytes);
    gauge(
      'mountkeeper_nas_total_bytes',
      'Size of the file system on the NAS.',
      ({ totalBytes }) => totalBytes,
    );

    ctx.tab({
      id: 'nas-space',
      place: 'card',
      title: { en: 'Space on the NAS', zh: 'NAS 空间' },
      texts,
      render: (view) => {
        const { space, problem } = last ?? {};
        const reason =
          problem === undefined ? null : html`<p class="reason">${view.t('failed', { reason: problem })}</p>`;
        if (!space) return html`<p>${view.t('none')}</p>${reason}`;
        const { freeBytes, totalBytes } = space;
        const figures = { free: view.bytes(freeBytes), total: view.bytes(totalBytes) };
        const used = totalBytes === 0 ? 0 : BAR * (1 - freeBytes / totalBytes);
        const isShort = freeBytes < sizeBytes(ctx.config.least);
        return html`<p><bdi>${ctx.config.host}</bdi>: ${view.t('free', figures)}</p>
          <svg class="badge" data-tone=${isShort ? 'bad' : 'good'} viewBox=${`0 0 ${BAR} 8`} width="100%" height="8"
            role="img" aria-label=${view.plain('free', figures)} preserveAspectRatio="none">
            <rect width=${BAR} height="8" fill="currentColor" opacity="0.2" />
            <rect width=${used.toFixed(1)} height="8" fill="currentColor" />
          </svg>${reason}`;
      },
    });
  },
});
