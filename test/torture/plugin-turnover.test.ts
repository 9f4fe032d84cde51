/** A thousand loads, changes and unloads, as in `test/e2e/plugins/turnover.test.ts`: about 20 minutes. */
process.env['MOUNTKEEPER_TURNS'] ??= '334';
await import('../e2e/plugins/turnover.test.js');
