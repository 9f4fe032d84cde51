/** Whom the document lets log in. */
export interface Admitted {
  readonly users: readonly unknown[];
  readonly system_group?: string;
}

/** Nobody can show who he is, so nobody is asked. */
export function isOpenToAll({ users, system_group: group }: Admitted): boolean {
  return users.length === 0 && group === undefined;
}
