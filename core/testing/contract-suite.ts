export interface ContractOptions {}
export function contractSuite(): void {}
