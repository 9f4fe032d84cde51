/** As `systemd-escape --template=mountkeeper-share@.target` writes the name of a share. */

const PLAIN = /[A-Za-z0-9:_.]/;

/** The instance: what stands between `@` and `.target`. */
export function instanceName(share: string): string {
  return [...Buffer.from(share)]
    .map((byte, index) => {
      const letter = String.fromCharCode(byte);
      if (letter === '/') return '-';
      const isPlain = PLAIN.test(letter) && !(index === 0 && letter === '.');
      return isPlain ? letter : String.raw`\x${byte.toString(16).padStart(2, '0')}`;
    })
    .join('');
}

export function targetOf(instance: string): string {
  return `mountkeeper-share@${instance}.target`;
}

/** The instances in the output of `systemctl list-units --plain --no-legend`. */
export function instancesIn(listed: string): readonly string[] {
  return listed
    .split('\n')
    .flatMap((line) => /^\s*mountkeeper-share@(.+)\.target\s/.exec(`${line} `)?.[1] ?? []);
}
