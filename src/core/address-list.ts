import { BlockList, isIP } from 'node:net';

const mapped = new BlockList();
mapped.addSubnet('::ffff:0:0', 96, 'ipv6');

/** Networks, and which addresses are in one of them. */
export class AddressList {
  readonly #ipv4 = new BlockList();
  readonly #ipv6 = new BlockList();
  readonly #includesUnixSocket: boolean;
  readonly #isEmpty: boolean;

  /**
   * `cidrs` such as `10.0.0.0/8` or `fd00::/8`; throws for what is none. `includesUnixSocket`: the peers of a unix socket, whose address is empty, are in it.
   * Never for a server that listens on a port: there the address of a client that has gone is empty, too.
   */
  constructor(cidrs: readonly string[], { includesUnixSocket = false }: { includesUnixSocket?: boolean } = {}) {
    this.#includesUnixSocket = includesUnixSocket;
    this.#isEmpty = cidrs.length === 0;
    for (const cidr of cidrs) {
      const [address = '', bits = ''] = cidr.split('/');
      if (isIP(address) === 4) this.#ipv4.addSubnet(address, Number(bits), 'ipv4');
      else this.#ipv6.addSubnet(address, Number(bits), 'ipv6');
    }
  }

  /** An IPv4 address in IPv6 notation (`::ffff:10.0.0.1`) counts as IPv4. What is no address is in none. */
  has(address: string): boolean {
    if (address === '') return this.#includesUnixSocket;
    if (this.#isEmpty) return false;
    const plain = address.split('%', 1)[0] ?? '';
    if (isIP(plain) === 4) return this.#ipv4.check(plain, 'ipv4');
    if (isIP(plain) !== 6) return false;
    return (mapped.check(plain, 'ipv6') ? this.#ipv4 : this.#ipv6).check(plain, 'ipv6');
  }
}
