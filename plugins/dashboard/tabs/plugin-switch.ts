/**
 * Switches a plugin in the text of the configuration and keeps comments and layout. The caller checks the
 * result.
 */

/** Whether a line is the header `[plugins.<name>]`, with any quotes and spaces. */
function isHeadOf(name: string, line: string): boolean {
  const text = line.trim();
  const end = text.indexOf(']');
  if (!text.startsWith('[') || text.startsWith('[[') || end === -1) return false;
  const rest = text.slice(end + 1).trim();
  const keys = text
    .slice(1, end)
    .split('.')
    .map((key) => key.trim().replaceAll(/["']/g, ''));
  return (
    (rest === '' || rest.startsWith('#')) && keys.length === 2 && keys[0] === 'plugins' && keys[1] === name
  );
}

/** Changes or adds `enabled` in the plugin's table; adds the table when there is none. */
export function withPluginSwitched(text: string, name: string, isOn: boolean): string {
  const lines = text.split('\n');
  const head = lines.findIndex((line) => isHeadOf(name, line));
  if (head === -1) return `${text}${text.endsWith('\n') ? '' : '\n'}\n[plugins.${name}]\nenabled = ${isOn}\n`;
  const rest = lines.slice(head + 1).findIndex((line) => /^\s*\[/.test(line));
  const end = rest === -1 ? lines.length : head + 1 + rest;
  const at = lines.findIndex((line, index) => index > head && index < end && /^\s*enabled\s*=/.test(line));
  if (at === -1)
    return [...lines.slice(0, head + 1), `enabled = ${isOn}`, ...lines.slice(head + 1)].join('\n');
  return lines
    .map((line, index) => (index === at ? line.replace(/=\s*(?:true|false)/, `= ${isOn}`) : line))
    .join('\n');
}
