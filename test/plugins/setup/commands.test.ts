import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';

const PLUGIN = new URL('../../../plugins/setup/index.js', import.meta.url).href;
const COMMAND = new URL('../../../plugins/setup/init/command.js', import.meta.url).href;

describe('what the set-up asks on a terminal', () => {
  it('is loaded when it is called, not by every start of the daemon', () => {
    const asks = "process.moduleLoadList.includes('NativeModule readline/promises')";
    const script = `
      await import(${JSON.stringify(PLUGIN)});
      const byPlugin = ${asks};
      await import(${JSON.stringify(COMMAND)});
      process.stdout.write(\`\${byPlugin} \${${asks}}\`);`;
    assert.equal(
      execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }),
      'false true',
    );
  });
});
