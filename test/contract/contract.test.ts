/** Every folder in plugins/ keeps the contract. */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { contractSuite } from 'mountkeeper/testing';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const folders = readdirSync(path.join(root, 'plugins'), { withFileTypes: true }).filter((entry) =>
  entry.isDirectory(),
);

const entryOf = (name: string) => path.join(root, 'dist/plugins', name, 'index.js');

for (const { name } of folders) {
  const neighbours = folders.filter((other) => other.name !== name).map((other) => entryOf(other.name));
  contractSuite(path.join(root, 'plugins', name), { entry: entryOf(name), neighbours });
}
