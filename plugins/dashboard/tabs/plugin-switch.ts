/** Switching a plugin in the text of the configuration, so that notes and layout stay. Whoever calls checks what came of it. */

function quoted(name: string): RegExp {
  return new RegExp(`^\\s*\\[\\s*plugins\\s*\\.\\s*"?${name.replaceAll(/[^\w-]/g, '')}"?\\s*\\]\\s*(?:#.*)?$`);
}

/** `enabled` in the table of the plugin is changed or added; the table is added where there is none. */
export function withPluginSwitched(text: string, name: string, isOn: boolean): string {
  const lines = text.split('\n');
  const head = lines.findIndex((line) => quoted(name).test(line));
  if (head === -1) return `${text.replace(/\n*$/, '\n')}\n[plugins.${name}]\nenabled = ${isOn}\n`;
  const rest = lines.slice(head + 1).findIndex((line) => /^\s*\[/.test(line));
  const end = rest === -1 ? lines.length : head + 1 + rest;
  const at = lines.findIndex((line, index) => index > head && index < end && /^\s*enabled\s*=/.test(line));
  if (at === -1) return [...lines.slice(0, head + 1), `enabled = ${isOn}`, ...lines.slice(head + 1)].join('\n');
  return lines.map((line, index) => (index === at ? line.replace(/=\s*(?:true|false)/, `= ${isOn}`) : line)).join('\n');
}
