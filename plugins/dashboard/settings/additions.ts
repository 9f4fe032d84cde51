/** What the form adds to an array of tables: each under a free name, and of what there is. */
type Table = Readonly<Record<string, unknown>>;

/** Arrays to which the form can add an item, and what it begins with. */
const BEGINNINGS: Readonly<Record<string, Table>> = {
  connections: { name: 'nas', type: 'sftp', options: { host: '', user: '', pass: '' } },
  shares: { name: 'files' },
  'smb.users': { name: 'user', password: '' },
  'webdav.users': { name: 'user', password: '' },
  'warmup.rules': { path: '' },
  'web.users': { name: 'user', password_hash: '', role: 'viewer' },
};

/** By the array: the key of its items that names one of another array. Without one it is left to be chosen. */
const NAMES_OF: Readonly<Record<string, { readonly key: string; readonly array: string }>> = {
  shares: { key: 'connection', array: 'connections' },
  'warmup.rules': { key: 'share', array: 'shares' },
};

export function isAddable(array: string): boolean {
  return Object.hasOwn(BEGINNINGS, array);
}

/** The item to add, as the check of the document wants it; undefined for an array that takes none. */
export function additionTo(array: string, document: Table | undefined): Table | undefined {
  if (!isAddable(array)) return undefined;
  const { name, ...others } = BEGINNINGS[array] ?? {};
  const named = NAMES_OF[array];
  const first = named && namesIn(itemsOf(named.array, document))[0];
  return {
    ...(typeof name === 'string' && { name: freeName(name, namesIn(itemsOf(array, document))) }),
    ...(named && first !== undefined && { [named.key]: first }),
    ...others,
  };
}

/** Some names may not differ in case only. */
function freeName(wanted: string, taken: readonly string[]): string {
  const folded = new Set(taken.map((one) => one.toLowerCase()));
  for (let number = 2, name = wanted; ; number += 1) {
    if (!folded.has(name)) return name;
    name = `${wanted}-${number}`;
  }
}

function itemsOf(array: string, document: Table | undefined): unknown {
  return array.split('.').reduce<unknown>((table, key) => (table as Table | undefined)?.[key], document);
}

export function namesIn(tables: unknown): readonly string[] {
  return Array.isArray(tables)
    ? tables.map((one) => (one as Table | null)?.['name']).filter((name) => typeof name === 'string')
    : [];
}
