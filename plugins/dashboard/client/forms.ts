/** Equal: the same button, whatever has moved around it. */
export function formKey(form: HTMLFormElement): string {
  const hidden = [...form.querySelectorAll<HTMLInputElement>('input[type=hidden]')];
  const fields = hidden.map(({ name, value }) => [name, value]);
  return JSON.stringify([form.getAttribute('hx-post'), fields]);
}
